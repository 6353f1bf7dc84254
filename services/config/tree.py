"""Every setting, typed. `configs/local.yaml` says in words what each one does.

Defaults live here and are repeated, commented, in configs/local.yaml; a test keeps the two equal.
"""

import platform
from pathlib import Path
from typing import Annotated, Literal, Self

import platformdirs
from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pipeline.llm.instructions import DEFAULT_INSTRUCTIONS
from services.config.engines import EmbeddedEngine, OpenAIEndpoint, VllmNixl
from services.config.faults import expect
from services.config.fields import (
    FilePath,
    FolderPath,
    HttpUrl,
    IceUrl,
    Kilobits,
    Language,
    LoopbackHost,
    Milliseconds,
    MqttUrl,
    Probability,
    Seconds,
    Side,
    Threads,
    TopicLevel,
    UserPath,
    as_list,
    topic_level,
)
from services.config.section import Section

WHISPER_WINDOW_S = 30.0
"""Seconds of audio that Whisper's encoder was trained on."""


class IceServer(Section):
    urls: Annotated[tuple[IceUrl, ...], BeforeValidator(as_list), Field(min_length=1)]
    username: str | None = None
    credential: SecretStr | None = None


class Server(Section):
    host: LoopbackHost = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    tls_cert: FilePath | None = None
    tls_key: FilePath | None = None
    max_sessions: Annotated[int, Field(ge=1, le=64)] = 4
    ice_servers: tuple[IceServer, ...] = ()
    session_idle_timeout_s: Seconds = 300.0
    connect_timeout_s: Seconds = 30.0
    max_offer_bytes: Annotated[int, Field(ge=4096, le=1_048_576)] = 65_536
    cache_dir: UserPath | None = None

    @model_validator(mode="after")
    def _certificate_and_key(self) -> Self:
        if self.tls_cert and not self.tls_key:
            raise expect("the file of the key that belongs to server.tls_cert", key="tls_key")
        if self.tls_key and not self.tls_cert:
            raise expect("the file of the certificate that belongs to server.tls_key", key="tls_cert")
        return self

    @property
    def cache_folder(self) -> Path:
        """Where files made on this machine are kept; it may not exist yet."""
        return self.cache_dir or Path(platformdirs.user_cache_dir("visavis"))


class Example(Section):
    user: Annotated[str, Field(min_length=1, max_length=2000)]
    agent: Annotated[str, Field(min_length=1, max_length=2000)]


class Agent(Section):
    name: Annotated[str, Field(min_length=1, max_length=60)] = "Vis"
    instructions: Annotated[str, Field(min_length=1, max_length=8000)] = DEFAULT_INSTRUCTIONS.system
    examples: tuple[Example, ...] = tuple(
        Example(user=user, agent=agent) for user, agent in DEFAULT_INSTRUCTIONS.examples
    )
    greeting: Annotated[str, Field(max_length=500)] = "Hello, I am Vis. What would you like to talk about?"
    apology: Annotated[str, Field(min_length=1, max_length=500)] = (
        "Sorry, something went wrong on my side. Could you say that again?"
    )
    not_understood: Annotated[str, Field(max_length=500)] = "Sorry, I did not catch that."
    filler: Annotated[str, Field(max_length=100)] = ""
    filler_after_ms: Milliseconds = 1500
    uninterruptible: tuple[Literal["greeting", "reply", "apology"], ...] = ()
    max_text_chars: Annotated[int, Field(ge=1, le=4000)] = 2000  # it is told back in a message of 16 KB


class ShortWindow(Section):
    max_speech_s: Annotated[float, Field(ge=0, le=WHISPER_WINDOW_S)] = 20.0
    margin_s: Annotated[float, Field(ge=2, le=10)] = 2.0

    @model_validator(mode="after")
    def _inside_the_window(self) -> Self:
        longest = WHISPER_WINDOW_S - self.margin_s
        if self.max_speech_s > longest:
            raise expect(
                f"at most {longest:g} seconds, {WHISPER_WINDOW_S:g} less margin_s", key="max_speech_s"
            )
        return self


class Guards(Section):
    max_no_speech_probability: Probability = 0.85
    min_mean_log_probability: Annotated[float, Field(ge=-10, le=0)] = -1.5
    max_compression_ratio: Annotated[float, Field(ge=1, le=100)] = 2.4


class Asr(Section):
    model: FolderPath | None = None
    language: Language = "en"
    threads: Threads = 1
    short_window: ShortWindow = ShortWindow()
    guards: Guards = Guards()


class Vad(Section):
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    stir_ms: Milliseconds = 64
    onset_ms: Milliseconds = 128
    pre_roll_ms: Milliseconds = 300


class Patience(Section):
    shortest_ms: Milliseconds = 200
    unsure_ms: Milliseconds = 720
    longest_ms: Milliseconds = 1000

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.shortest_ms <= self.unsure_ms <= self.longest_ms:
            raise expect(
                f"at least shortest_ms, {self.shortest_ms}, and at most longest_ms, {self.longest_ms}",
                key="unsure_ms",
            )
        return self


class Speculation(Section):
    enabled: bool = True
    partials_ms: Milliseconds = 600
    drafts_per_turn: Annotated[int, Field(ge=1, le=100)] = 6


class TurnTaking(Section):
    vad: Vad = Vad()
    pause_ms: Milliseconds = 32
    patience: Patience = Patience()
    smart_turn: bool = True
    speculation: Speculation = Speculation()
    least_voiced_ms: Milliseconds = 400
    max_utterance_s: Seconds = 30.0

    @model_validator(mode="after")
    def _pause_before_end(self) -> Self:
        if self.patience.shortest_ms < self.pause_ms:
            raise expect(
                f"at least turn_taking.pause_ms, {self.pause_ms}: a turn ends after its last pause began",
                key="patience.shortest_ms",
            )
        return self


class Sampling(Section):
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.2
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    repeat_penalty: Annotated[float, Field(ge=1, le=2)] = 1.05
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=4096)] = 80


class EvidenceFolder(Section):
    enabled: bool = False
    folder: FolderPath | None = None
    top_k: Annotated[int, Field(ge=1, le=50)] = 3
    max_tokens: Annotated[int, Field(ge=16, le=100_000)] = 600
    tenant: Annotated[str, Field(min_length=1)] = "public"
    role: Annotated[str, Field(min_length=1)] = "visitor"

    @model_validator(mode="after")
    def _folder_when_enabled(self) -> Self:
        if self.enabled and self.folder is None:
            raise expect("the folder that holds the documents, because enabled is true", key="folder")
        return self


class Llm(Section):
    kind: Literal["embedded", "openai", "vllm_nixl"] = "embedded"
    embedded: EmbeddedEngine = EmbeddedEngine()
    openai: OpenAIEndpoint = OpenAIEndpoint()
    vllm_nixl: VllmNixl = VllmNixl()
    split_log: UserPath | None = None
    context_tokens: Annotated[int, Field(ge=256, le=131_072)] = 2048
    history_tokens: Annotated[int, Field(ge=0, le=131_072)] = 240
    sampling: Sampling = Sampling()
    first_token_timeout_s: Seconds = 10.0
    token_gap_timeout_s: Seconds = 10.0
    warm: bool = True
    evidence: EvidenceFolder = EvidenceFolder()

    @model_validator(mode="after")
    def _endpoint_is_named(self) -> Self:
        if self.kind == "openai" and self.openai.base_url is None:
            raise expect("the engine's address, because kind is openai", key="openai.base_url")
        if self.kind == "openai" and self.openai.model is None:
            raise expect("the name the engine serves its model under", key="openai.model")
        if self.kind == "vllm_nixl":
            for phase in ("prefill", "decode"):
                if getattr(self.vllm_nixl, phase).url is None:
                    what = f"the address of the engine for {phase}, because kind is vllm_nixl"
                    raise expect(what, key=f"vllm_nixl.{phase}.url")
            if self.vllm_nixl.model is None:
                raise expect("the name both engines serve the model under", key="vllm_nixl.model")
        return self

    @model_validator(mode="after")
    def _prompt_and_reply_fit(self) -> Self:
        evidence = self.evidence.max_tokens if self.evidence.enabled else 0
        taken = self.sampling.max_output_tokens + evidence + self.history_tokens
        if self.context_tokens <= taken:
            raise expect(
                f"more than {taken}, what reply, evidence and history may take together", key="context_tokens"
            )
        return self


class Tts(Section):
    voice: FilePath | None = None
    first_clause: bool = True
    length_scale: Annotated[float, Field(ge=0.5, le=2)] | None = None
    noise_scale: Annotated[float, Field(ge=0, le=2)] | None = None
    noise_w_scale: Annotated[float, Field(ge=0, le=2)] | None = None


class Render(Section):
    size: Side = 512
    fps: Annotated[int, Field(ge=5, le=60)] = 25
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 7


class VideoBitrate(Section):
    start: Kilobits = 1000
    min: Kilobits = 300
    max: Kilobits = 1000

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start < self.min:
            raise expect(f"at least video.bitrate_kbps.min, {self.min}", key="start")
        if self.start > self.max:
            raise expect(f"at most video.bitrate_kbps.max, {self.max}", key="start")
        return self


class Video(Section):
    codec: Literal["VP8", "H264"] = "VP8"
    bitrate_kbps: VideoBitrate = VideoBitrate()


class Mqtt(Section):
    url: MqttUrl | None = None
    username: Annotated[str, Field(min_length=1)] | None = None
    password: SecretStr | None = None
    ca_file: FilePath | None = None

    @model_validator(mode="after")
    def _password_of_somebody(self) -> Self:
        if self.password is not None and self.username is None:
            raise expect("the name that telemetry.mqtt.password belongs to", key="username")
        return self


class Telemetry(Section):
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    site: TopicLevel = "default"
    node: TopicLevel | None = None
    content: bool = False
    slo: FilePath | None = None
    otlp_endpoint: HttpUrl | None = None
    recordings: UserPath | None = None
    mqtt: Mqtt = Mqtt()

    @property
    def node_name(self) -> str:
        """This machine among those of a site."""
        return self.node or topic_level(platform.node())


class Config(BaseSettings):
    """The whole tree. `Config()` is the defaults alone; `load` is what a start reads."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix="VISAVIS_",
        env_nested_delimiter="__",
        env_parse_none_str="null",
    )

    server: Server = Server()
    agent: Agent = Agent()
    asr: Asr = Asr()
    turn_taking: TurnTaking = TurnTaking()
    llm: Llm = Llm()
    tts: Tts = Tts()
    render: Render = Render()
    video: Video = Video()
    telemetry: Telemetry = Telemetry()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # `load` reads the environment itself, so that a fault can be traced to where it came from.
        return (init_settings,)
