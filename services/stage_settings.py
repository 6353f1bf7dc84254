"""What each stage is told of the configuration."""

from importlib.metadata import version

from pipeline.asr.endpointing import EndpointingSettings
from pipeline.asr.guards import TranscriptGuards
from pipeline.asr.patience import PatienceSettings
from pipeline.asr.whisper import WhisperSettings
from pipeline.session import SessionSettings
from pipeline.stages import Conduct, Saying
from pipeline.tts.clauses import GROWING_LIMITS, SHARED_LIMITS, WHOLE_SENTENCES
from pipeline.tts.piper import PiperSettings
from pipeline.webrtc.peer import IceServer
from pipeline.webrtc.tuning.encoders import Bitrate
from services.config import Config


def endpointing(config: Config) -> EndpointingSettings:
    turn_taking = config.turn_taking
    return EndpointingSettings(
        threshold=turn_taking.vad.threshold,
        stir=turn_taking.vad.stir_ms / 1000,
        onset=turn_taking.vad.onset_ms / 1000,
        pause=turn_taking.pause_ms / 1000,
        longest=turn_taking.patience.longest_ms / 1000,
        max_utterance=turn_taking.max_utterance_s,
    )


def conduct(config: Config) -> Conduct:
    turn_taking, agent = config.turn_taking, config.agent
    patience = turn_taking.patience
    return Conduct(
        patience=PatienceSettings(
            shortest=patience.shortest_ms / 1000,
            unsure=patience.unsure_ms / 1000,
            longest=patience.longest_ms / 1000,
        ),
        speculate=turn_taking.speculation.enabled,
        drafts_a_turn=turn_taking.speculation.drafts_per_turn,
        warm=config.llm.warm,
        filler_after=agent.filler_after_ms / 1000,
        least_voiced=turn_taking.least_voiced_ms / 1000,
        uninterruptible=frozenset(map(Saying, agent.uninterruptible)),
        clauses=GROWING_LIMITS if config.tts.first_clause else WHOLE_SENTENCES,
        shared_clauses=SHARED_LIMITS if config.tts.first_clause else WHOLE_SENTENCES,
    )


def whisper(config: Config) -> WhisperSettings:
    asr = config.asr
    return WhisperSettings(
        model=asr.model,
        language=asr.language,
        threads=asr.threads,
        margin=asr.short_window.margin_s,
        max_short_speech=asr.short_window.max_speech_s,
        guards=TranscriptGuards(
            max_no_speech_probability=asr.guards.max_no_speech_probability,
            min_mean_log_probability=asr.guards.min_mean_log_probability,
            max_compression_ratio=asr.guards.max_compression_ratio,
        ),
    )


def piper(config: Config) -> PiperSettings:
    tts = config.tts
    return PiperSettings(
        length_scale=tts.length_scale, noise_scale=tts.noise_scale, noise_w=tts.noise_w_scale
    )


def session(config: Config) -> SessionSettings:
    bitrate_kbps = config.video.bitrate_kbps
    return SessionSettings(
        name=config.agent.name,
        version=version("visavis"),
        max_text_chars=config.agent.max_text_chars,
        connect_timeout=config.server.connect_timeout_s,
        idle_timeout=config.server.session_idle_timeout_s,
        fps=config.render.fps,
        video_codec=config.video.codec,
        bitrate=Bitrate(
            start=bitrate_kbps.start * 1000,
            min=bitrate_kbps.min * 1000,
            max=bitrate_kbps.max * 1000,
        ),
        ice_servers=[
            IceServer(
                server.urls,
                server.username,
                server.credential.get_secret_value() if server.credential else None,
            )
            for server in config.server.ice_servers
        ],
    )
