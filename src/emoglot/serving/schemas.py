"""Requests and answers of the service, with the examples that the documentation of the API shows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from emoglot.evaluation.evidence import Language
from emoglot.inference.prediction import Sentiment, TokenWeight
from emoglot.labels import DYADS, OPPOSITES

LABEL_EXAMPLE = ["joy", "surprise"]
SCORES_EXAMPLE = {"joy": 0.56, "surprise": 0.99, "fear": 0.02}


def _as_integer(value: Any) -> Any:
    """Return 1 for 1.0, which JSON does not distinguish."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_as_integer)]


Share = Annotated[float, Field(gt=0, le=1)]


class PredictRequest(BaseModel):
    """One text or several, and what to return for them."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {"text": "Que sorpresa tan bonita"},
                {
                    "texts": ["Ich habe Angst", "मुझे बहुत गुस्सा आ रहा है"],
                    "explain": True,
                    "threshold": {"fear": 0.5},
                    "top_k": 3,
                },
            ],
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "not": {
                "required": ["precision", "recall"],
                "properties": {"precision": {"type": "number"}, "recall": {"type": "number"}},
            },
        },
    )

    # One of the two; `model_fields_set` shows which was given, so that null is not accepted as a text.
    text: str = Field(default="", description="One text.")
    texts: list[str] = Field(default=[], description="Several texts; one result each, in their order.")
    language: str | None = Field(
        default=None,
        max_length=100,
        description="Their language, by code or name; its thresholds are used if the model has them. Without it, the "
        "language is recognised; 'any' selects the thresholds for any text.",
    )
    precision: Share | None = Field(
        default=None,
        description="Predict a label from the lowest score at which it was right this often on validation data.",
    )
    recall: Share | None = Field(
        default=None,
        description="Predict a label from the highest score that found this share of its texts on validation data.",
    )
    threshold: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default={}, description="Thresholds to use instead of the model's, by label."
    )
    explain: bool = Field(
        default=False, description="Also return the weight and position of every token, and the thresholds."
    )
    top_k: Count | None = Field(
        default=None, description="Return only this many scores, the highest, and those of all labels of the text."
    )

    @model_validator(mode="after")
    def _one_or_several(self) -> PredictRequest:
        if len(self.model_fields_set & {"text", "texts"}) != 1:
            raise ValueError("exactly one of text and texts must be set")
        if self.precision is not None and self.recall is not None:
            raise ValueError("at most one of precision and recall can be set")
        return self

    def all_texts(self) -> list[str]:
        """Return the texts of either field."""
        return [self.text] if "text" in self.model_fields_set else self.texts


class Result(BaseModel):
    """The prediction for a text. Labels are identifiers, which do not depend on the language of the text."""

    labels: list[str] = Field(description="The labels whose scores reach their thresholds.", examples=[LABEL_EXAMPLE])
    scores: dict[str, float] = Field(description="By label; with top_k, the highest first.", examples=[SCORES_EXAMPLE])
    sentiment: Sentiment | None = Field(
        description="Null for a text that was not read, and for a model without sentiment."
    )
    language: str | None = Field(description="The code of the language, given or recognised; null if unknown.")
    truncated: bool = Field(description="Only the beginning was read.")
    unreadable: bool = Field(description="The model does not know the script; there are no scores.")
    tokens: list[TokenWeight] | None = Field(
        default=None, description="With explain; the positions are in Unicode code points."
    )
    thresholds: dict[str, float | None] | None = Field(
        default=None,
        description="With explain: the score from which each label is given to this text, with respect to its language "
        "and the request; null for a label that is never given.",
    )


class ModelName(BaseModel):
    """The model that answered."""

    name: str = Field(examples=["emoglot-small"])
    version: str = Field(examples=["0.1.0"])


class PredictResponse(BaseModel):
    """One result for each text, in order."""

    model: ModelName
    results: list[Result]
    never_given: list[str] = Field(description="Labels that do not reach the requested precision at any threshold.")


class Label(BaseModel):
    """A label; `kind` is primary, dyad or other, as on Plutchik's wheel."""

    id: str
    threshold: float | None = Field(description="The score from which it is predicted; null if it is never predicted.")
    kind: str
    opposite: str | None = Field(default=None, description="Of a primary emotion.")
    of: list[str] | None = Field(default=None, description="The two primary emotions that a dyad is made of.")

    @classmethod
    def of_name(cls, name: str, threshold: float | None) -> Label:
        """Return a label with its place on the wheel, if it has one."""
        if name in OPPOSITES:
            return cls(id=name, threshold=threshold, kind="primary", opposite=OPPOSITES[name])
        if name in DYADS:
            return cls(id=name, threshold=threshold, kind="dyad", of=list(DYADS[name]))
        return cls(id=name, threshold=threshold, kind="other")


@dataclass(frozen=True)
class LanguageInfo(Language):
    """The quality measured for a language, and its own thresholds."""

    threshold: dict[str, float | None] | None


class Limits(BaseModel):
    """The limits of one request."""

    texts: int
    characters: int
    body_bytes: int


class ModelResponse(ModelName):
    """The description of the model."""

    labels: list[Label]
    languages: list[LanguageInfo]
    limits: Limits
    sentiment: bool = Field(description="Whether the model predicts sentiment.")
    strictness: bool = Field(description="Whether the model accepts precision and recall.")
    card: str = Field(description="Markdown.")


class Problem(BaseModel):
    """An error, in one sentence."""

    detail: str


class FieldProblem(BaseModel):
    """An error in one field of the request."""

    loc: list[str | int]
    msg: str
    type: str


class InvalidRequest(BaseModel):
    """The fields of the request that break a rule."""

    detail: list[FieldProblem]


def request_schema() -> dict[str, Any]:
    """Return the description of the body of a request for OpenAPI."""
    return {"required": True, "content": {"application/json": {"schema": PredictRequest.model_json_schema()}}}
