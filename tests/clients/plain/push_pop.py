"""Python's httpx. Usage: push_pop.py <address> <queue>"""

import sys

import httpx

address, queue = sys.argv[1:]
items = [{"queue": queue, "payload": f"from {queue}"}]
httpx.post(f"http://{address}/api/v1/push", json={"items": items}).raise_for_status()
print(httpx.get(f"http://{address}/api/v1/pop/queue/{queue}", params={"autoAck": "true"}).raise_for_status().text)
