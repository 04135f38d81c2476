// Node's fetch, which sends Sec-Fetch-Mode like a browser. Usage: push_pop.mjs <address> <queue>
const [address, queue] = process.argv.slice(2)
const items = [{ queue, payload: `from ${queue}` }]
const pushed = await fetch(`http://${address}/api/v1/push`, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ items }),
})
if (pushed.status !== 201) throw new Error(await pushed.text())
const popped = await fetch(`http://${address}/api/v1/pop/queue/${queue}?autoAck=true`)
console.log(await popped.text())
