"""The errors of the product, as a tree.

VisavisError
├── ConfigError              a setting is wrong; the message names key, value and what was expected
├── MissingModelError        a model package or file is not installed; the message says how to get it
├── IncompatibleLibraryError a library is installed in a version that this was not written for
├── IllegalTransitionError   a state machine was fed an event its state does not allow
├── BadInputError            a client sent something we do not accept
│   ├── BadOfferError        SDP that is not SDP, or without audio
│   ├── BadMessageError      data-channel text that is not a message of ours
│   └── BadAudioError        a file that is not audio, or has no speech in it
├── ServerFullError          no session can start now
├── HandoffRefusedError      a ticket or the state that came with it is not what was reserved for
└── StageError               a stage failed during a turn; `code` goes into the turn's record
    ├── TranscriptionError
    ├── NotUnderstoodError   somebody spoke, and no words could be made out
    ├── LanguageModelError
    │   ├── AdmissionRefusedError  an engine's pool has no room in time
    │   └── EmptyReplyError  the model answered, but with nothing that can be said
    └── SynthesisError
"""

from typing import ClassVar


class VisavisError(Exception):
    """Base of all errors raised on purpose. `code` is stable and goes into records and replies."""

    code: ClassVar[str] = "error"


class ConfigError(VisavisError):
    code = "config"


class MissingModelError(VisavisError):
    code = "model_missing"


class IncompatibleLibraryError(VisavisError):
    code = "library_incompatible"


class IllegalTransitionError(VisavisError):
    code = "illegal_transition"


class BadInputError(VisavisError):
    code = "bad_input"


class BadOfferError(BadInputError):
    code = "bad_offer"


class BadMessageError(BadInputError):
    code = "bad_message"


class BadAudioError(BadInputError):
    code = "bad_audio"


class ServerFullError(VisavisError):
    code = "server_full"


class HandoffRefusedError(VisavisError):
    code = "handoff_refused"


class StageError(VisavisError):
    """`told` is what a caller may know of it: the message itself can name machines."""

    code = "stage_failed"
    told: ClassVar[str] = "Something went wrong while answering."


class TranscriptionError(StageError):
    code = "asr_failed"
    told = "What you said could not be recognised."


class NotUnderstoodError(StageError):
    code = "not_understood"
    told = "What you said could not be made out."


class LanguageModelError(StageError):
    code = "llm_failed"
    told = "The language model did not answer."


class AdmissionRefusedError(LanguageModelError):
    code = "admission_refused"
    told = "Too many people are talking with me at the moment."


class EmptyReplyError(LanguageModelError):
    code = "reply_empty"
    told = "The answer held nothing that can be said."


class SynthesisError(StageError):
    code = "tts_failed"
    told = "The answer could not be spoken."
