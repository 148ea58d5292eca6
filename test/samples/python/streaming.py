"""The events of a streamed call: its function comes first, then its arguments in pieces. Prints each call."""

from assistant_tools import tools
from openai import OpenAI

client = OpenAI()
names, pieces = {}, {}
for event in client.responses.create(
    model="gpt-6.1-terra", tools=tools, input="北京和上海今天各是什么天气?两地温差多少度?", stream=True
):
    if event.type == "response.output_item.added" and event.item.type == "function_call":
        names[event.output_index] = event.item.name
        pieces[event.output_index] = []
    elif event.type == "response.function_call_arguments.delta":
        pieces[event.output_index].append(event.delta)
    elif event.type == "response.function_call_arguments.done":
        assert "".join(pieces[event.output_index]) == event.arguments
        print(names[event.output_index], event.arguments)
