"""What the service is asked and what it answers, with the examples that the API's documentation shows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from emoglot.labels import DYADS, OPPOSITES

LABEL_EXAMPLE = ["joy", "surprise"]
SCORES_EXAMPLE = {"joy": 0.56, "surprise": 0.99, "fear": 0.02}


def _as_integer(value: Any) -> Any:
    """Take 1.0 for 1, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_as_integer)]


Share = Annotated[float, Field(gt=0, le=1)]


class PredictRequest(BaseModel):
    """One text or several, and what is wanted of them."""

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

    # One of the two; which it is shows in what was given, so that null is not taken for a text.
    text: str = Field(default="", description="One text.")
    texts: list[str] = Field(default=[], description="Several texts; one result each, in their order.")
    language: str | None = Field(
        default=None,
        max_length=100,
        description="Their language, by code or name: where the model has thresholds for it, they are used. Without "
        "it, the language is recognised; 'any' stands for the thresholds for any text.",
    )
    precision: Share | None = Field(
        default=None, description="Give a label only from where it was right so often on validation data."
    )
    recall: Share | None = Field(
        default=None, description="Give a label from where so many of its texts were found on validation data."
    )
    threshold: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default={}, description="Thresholds to use instead of the model's, by label."
    )
    explain: bool = Field(
        default=False, description="Also give every token's weight and place in the text, and the thresholds."
    )
    top_k: Count | None = Field(default=None, description="Give only so many scores, the highest.")

    @model_validator(mode="after")
    def _one_or_several(self) -> PredictRequest:
        if len(self.model_fields_set & {"text", "texts"}) != 1:
            raise ValueError("give either text or texts")
        if self.precision is not None and self.recall is not None:
            raise ValueError("give either precision or recall")
        return self

    def all_texts(self) -> list[str]:
        """Give the texts, however they were given."""
        return [self.text] if "text" in self.model_fields_set else self.texts


class Token(BaseModel):
    """A token, how much it weighed, and where it stands in the text, counted in Unicode code points."""

    token: str
    weight: float
    start: int
    end: int


class SentimentResult(BaseModel):
    """Positive, negative, neutral or mixed, with the chance of it."""

    name: str = Field(examples=["positive"])
    score: float


class Result(BaseModel):
    """What a text carries. Labels are ids, the same whatever the language of the text."""

    labels: list[str] = Field(description="Those whose scores reach their thresholds.", examples=[LABEL_EXAMPLE])
    scores: dict[str, float] = Field(description="By id, the highest first with top_k.", examples=[SCORES_EXAMPLE])
    sentiment: SentimentResult | None = Field(description="Of a text that was read, if the model learnt it.")
    language: str | None = Field(description="The code that was named or recognised; null if unknown.")
    truncated: bool = Field(description="Only the beginning was read.")
    unreadable: bool = Field(description="The model does not know these letters; there are no scores.")
    tokens: list[Token] | None = Field(default=None, description="With explain.")
    thresholds: dict[str, float | None] | None = Field(
        default=None,
        description="With explain: the score from which each label is given to this text, after its language and what "
        "was asked for; null for a label that never is.",
    )


class ModelName(BaseModel):
    """Which model answered."""

    name: str = Field(examples=["emoglot-small"])
    version: str = Field(examples=["0.1.0"])


class PredictResponse(BaseModel):
    """One result for each text, in order."""

    model: ModelName
    results: list[Result]
    never_given: list[str] = Field(description="Labels that no threshold makes as precise as asked for.")


class Label(BaseModel):
    """A label; `kind` is primary, dyad or other, after Plutchik's wheel."""

    id: str
    threshold: float | None = Field(description="The score from which it is given; null if it never is.")
    kind: str
    opposite: str | None = Field(default=None, description="Of a primary emotion.")
    of: list[str] | None = Field(default=None, description="The two primary emotions that a dyad is made of.")

    @classmethod
    def of_name(cls, name: str, threshold: float | None) -> Label:
        """Place a label on the wheel, if it belongs there."""
        if name in OPPOSITES:
            return cls(id=name, threshold=threshold, kind="primary", opposite=OPPOSITES[name])
        if name in DYADS:
            return cls(id=name, threshold=threshold, kind="dyad", of=list(DYADS[name]))
        return cls(id=name, threshold=threshold, kind="other")


class LanguageInfo(BaseModel):
    """What was measured of a language, and the thresholds it has of its own."""

    code: str
    name: str
    weak: bool
    macro_f1: float | None
    labelled_rows: int
    agreement: float | None
    translated_rows: int
    threshold: dict[str, float | None] | None


class Limits(BaseModel):
    """What one request may hold."""

    texts: int
    characters: int
    body_bytes: int


class ModelResponse(ModelName):
    """All that is known of the model."""

    labels: list[Label]
    languages: list[LanguageInfo]
    limits: Limits
    sentiment: bool = Field(description="Whether it says the sentiment of a text.")
    strictness: bool = Field(description="Whether a precision or recall can be asked for.")
    card: str = Field(description="Markdown.")


class Problem(BaseModel):
    """What went wrong, in a sentence."""

    detail: str


class FieldProblem(BaseModel):
    """What is wrong with a field of the request."""

    loc: list[str | int]
    msg: str
    type: str


class InvalidRequest(BaseModel):
    """Which fields of the request break a rule."""

    detail: list[FieldProblem]


def request_schema() -> dict[str, Any]:
    """Describe the body of a request for OpenAPI."""
    return {"required": True, "content": {"application/json": {"schema": PredictRequest.model_json_schema()}}}
