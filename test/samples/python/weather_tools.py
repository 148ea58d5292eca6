"""Define a tool of the Responses API by its JSON Schema."""

# sample: define a tool
tools = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "查询指定城市的当日天气。",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "城市名,如 北京"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
]
# end of sample
