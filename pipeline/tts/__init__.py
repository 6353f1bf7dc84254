"""Speaking: the reply's text as the model streams it → clauses → speech with true times.

delta → `normalise.SpeakableText` → `clauses.ClauseCutter` → `piper.PiperSynthesizer` → SpeechChunk

The normaliser comes before the cutter: a link, a code fence or a table spans clauses, and only
what will be spoken may count towards a clause's length or end it.
"""
