"""What all sections of the settings have in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from services.config.faults import expect


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_number(cls, value: object, info: Any) -> object:
        # YAML reads `threads: yes` as true, and pydantic would go on to read that as 1.
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation is not bool:
            raise expect(None)
        return value
