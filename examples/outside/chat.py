"""A real model behind the same interface: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import msgspec

import relet
from examples.outside.asking import ask


class Completion(msgspec.Struct, frozen=True):
    """What a model said, and what it cost."""

    text: str
    tokens: int


class Message(msgspec.Struct, frozen=True):
    """One turn; a refusal comes without content."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One answer, and why it ended."""

    message: Message
    finish_reason: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """What is charged."""

    total_tokens: int = 0


class Answer(msgspec.Struct, frozen=True):
    """What the endpoint sends, as far as it is read here."""

    choices: list[Choice]
    usage: Usage = Usage()


class ChatModel:
    """`base_url` as a client of OpenAI takes it, such as http://localhost:11434/v1."""

    def __init__(self, base_url: str, model: str, api_key: str | None = None, *, timeout: float = 60.0) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout = timeout

    def complete(self, prompt: str) -> Completion:
        """One answer. Raises `relet.Temporary` where asking again may help, else `relet.Permanent`."""
        said = {"model": self._model, "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        received = ask(self._url, said, headers=self._headers, timeout=self._timeout)
        try:
            answer = msgspec.json.decode(received, type=Answer)
            choice = answer.choices[0]
        except (msgspec.DecodeError, IndexError) as wrong:
            raise relet.Temporary(f"{self._url} sent no chat completion: {wrong}", code="MODEL-ANSWER") from None
        if choice.finish_reason == "length":
            raise relet.Permanent("the model's answer was cut off at its limit", code="MODEL-LENGTH")
        if not choice.message.content:
            raise relet.Permanent(f"the model gave no text ({choice.finish_reason})", code="MODEL-REFUSED")
        return Completion(text=choice.message.content, tokens=answer.usage.total_tokens)
