"""The values of tool_choice, and parallel_tool_calls: prints which functions the first response calls under each."""

import json

from assistant_tools import tools
from openai import OpenAI

client = OpenAI()
question = "北京和上海今天各是什么天气?两地温差多少度?"


def called(question, **control):
    response = client.responses.create(model="gpt-6.1-terra", tools=tools, input=question, **control)
    return [item.name for item in response.output if item.type == "function_call"]


get_weather = {"type": "function", "name": "get_weather"}
print(
    json.dumps(
        {
            "default": called(question),
            "auto": called(question, tool_choice="auto"),
            "required": called("你好", tool_choice="required"),
            "one function": called("25 减 22 是多少?", tool_choice=get_weather),
            "none": called(question, tool_choice="none"),
            "not parallel": called(question, parallel_tool_calls=False),
        }
    )
)
