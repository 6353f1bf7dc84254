/** The captions as a text track of the video, for players and tools that read one: a cue for each clause. */

/** A cue that is still growing ends here at the latest. */
const OPEN_S = 60;

export class CaptionTrack {
  #video;
  #track;
  #cue = null;
  #text = "";
  /** When the sound stopped in the middle of a clause, in the video's time. */
  #heldAt = null;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#video = video;
    this.#track = video.addTextTrack("captions", "Live captions", "en");
    this.#track.mode = "hidden";
  }

  /** A word is heard: the clause's cue says what was heard of it so far. */
  addWord(word) {
    if (this.#cue === null) this.#begin();
    this.#heldAt = null;
    this.#text = this.#text ? `${this.#text} ${word}` : word;
    this.#cue.text = escape(this.#text);
  }

  /** The sound stops here, perhaps for good. */
  hold() {
    this.#heldAt ??= this.#video.currentTime;
  }

  /** The clause was heard to its end. */
  endClause() {
    this.#end(this.#video.currentTime);
  }

  /** The clause ends in the middle; if it was held, where that was. */
  cut() {
    this.#end(this.#heldAt ?? this.#video.currentTime);
  }

  /** Another stream begins, and its time with it. */
  restart() {
    this.cut();
    for (const cue of [...this.#track.cues]) this.#track.removeCue(cue);
  }

  #begin() {
    const now = this.#video.currentTime;
    this.#text = "";
    this.#cue = new VTTCue(now, now + OPEN_S, "");
    this.#track.addCue(this.#cue);
  }

  #end(at) {
    this.#heldAt = null;
    if (this.#cue === null) return;
    this.#cue.endTime = Math.max(at, this.#cue.startTime);
    this.#cue = null;
  }
}

/** A cue's text is markup; ours is what somebody said. */
function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
