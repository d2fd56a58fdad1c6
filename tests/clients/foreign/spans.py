"""Three agents on the OpenAI SDK under a real tracer; writes their spans as a collector's file exporter does.

    spans.py genai|openinference OUT.jsonl
"""

import base64
import json
import os
import sys

from backend import REFUSED, serve

os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
os.environ.setdefault("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")

import openai
from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

CONVENTION, OUT = sys.argv[1:]
ASK = "What is 12 + 30?"
NUMBER = {"type": "integer"}
ADD = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}}}


class Lines(SpanExporter):
    """OTLP/JSON: ids are hexadecimal there, where protobuf's own JSON has base64."""

    def export(self, spans):
        document = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        for resource in document["resourceSpans"]:
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[name] = base64.b64decode(span[name]).hex()
        with open(OUT, "a") as out:
            out.write(json.dumps(document) + "\n")
        return SpanExportResult.SUCCESS


def main():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines()))
    trace.set_tracer_provider(provider)
    if CONVENTION == "genai":
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    else:
        from openinference.instrumentation.openai import OpenAIInstrumentor
    OpenAIInstrumentor().instrument()
    client = openai.OpenAI(base_url=serve(), api_key="none", max_retries=0)
    tracer = trace.get_tracer("program")
    try:
        with tracer.start_as_current_span("workflow"):
            with agent(tracer, "planner"):
                ask(client, [system("You plan."), user(ASK)])
            with agent(tracer, "solver"):
                messages = [system("You solve."), user(ASK)]
                called = ask(client, messages, tools=[{"type": "function", "function": ADD}])
                calls = [call.model_dump() for call in called.tool_calls]
                messages.append({"role": "assistant", "content": None, "tool_calls": calls})
                messages.append({"role": "tool", "tool_call_id": calls[0]["id"], "content": "42"})
                ask(client, messages, tools=[{"type": "function", "function": ADD}])
            with agent(tracer, "critic"):
                ask(client, [user(REFUSED)])
    except openai.RateLimitError:
        pass
    provider.shutdown()


def agent(tracer, name):
    if CONVENTION == "genai":
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes)
    attributes = {"openinference.span.kind": "AGENT", "agent.name": name}
    return tracer.start_as_current_span(name, attributes=attributes)


def ask(client, messages, **more):
    return client.chat.completions.create(model="gpt-x", messages=messages, **more).choices[0].message


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


main()
