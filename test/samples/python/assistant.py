"""An assistant with two tools: two calls at once, then one that works with their results, then the answer."""

from assistant_functions import call_function
from assistant_tools import tools

# sample: an assistant with two tools
import json

from openai import OpenAI

client = OpenAI()
question = "北京和上海今天各是什么天气?两地温差多少度?"
input_list = [{"role": "user", "content": question}]

for _ in range(10):
    response = client.responses.create(
        model="gpt-6.1-terra", tools=tools, input=input_list,
    )
    calls = [i for i in response.output if i.type == "function_call"]
    if not calls:
        print(response.output_text)
        break
    input_list += response.output
    for item in calls:
        result = call_function(item.name, json.loads(item.arguments))
        input_list.append({
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": json.dumps(result, ensure_ascii=False),
        })
# end of sample
