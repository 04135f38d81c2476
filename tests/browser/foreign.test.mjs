// A page of another origin can do nothing to a server on this machine, and its own pages can.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'

import { startBrowser, startPages, startServer } from './harness.mjs'

const QUEUE = 'precious'
const POP = `/api/v1/pop/queue/${QUEUE}?autoAck=true&batch=100`

// Everything that a page can try, with and without a preflight. Each attempt ends, in success or failure.
const ATTACK = `<!doctype html><title>evil</title><body><script>
const queue = ${JSON.stringify(QUEUE)}
const quietly = (promise) => promise.then((answer) => answer.status, () => 'blocked')
const send = (target, path, type, body) => fetch(target + path, {
  method: 'POST', mode: type === 'text/plain' ? 'no-cors' : 'cors', headers: { 'content-type': type }, body,
})
function element(name, set) {
  return new Promise((done) => {
    const made = Object.assign(document.createElement(name), set)
    made.onload = made.onerror = () => done(made)
    document.body.append(made)
  })
}
async function form(target, path) {
  const frame = await element('iframe', { name: 'sink' + Math.random(), srcdoc: 'x' })
  const form = Object.assign(document.createElement('form'), {
    method: 'POST', enctype: 'text/plain', action: target + path, target: frame.name,
  })
  // As text/plain the field reads {"enabled":true,"x":"="}.
  form.append(Object.assign(document.createElement('input'), { name: '{"enabled":true,"x":"', value: '"}' }))
  document.body.append(form)
  const answered = new Promise((done) => { frame.onload = done })
  form.submit()
  await answered
}
async function attack(target) {
  const push = JSON.stringify({ items: [{ queue, payload: 'evil' }] })
  for (const type of ['text/plain', 'application/json']) {
    await quietly(send(target, '/api/v1/push', type, push))
    await quietly(send(target, '/api/v1/system/maintenance/pop', type, '{"enabled":true}'))
    await quietly(send(target, '/api/v1/consumer-groups/__QUEUE_MODE__/queues/' + queue + '/seek', type, '{"toEnd":true}'))
  }
  await quietly(fetch(target + '/api/v1/resources/queues/' + queue, { method: 'DELETE' }))
  await quietly(fetch(target + ${JSON.stringify(POP)}, { mode: 'no-cors' }))
  await element('img', { src: target + ${JSON.stringify(POP)} })
  await element('script', { src: target + ${JSON.stringify(POP)} })
  await form(target, '/api/v1/system/maintenance/pop')
  return 'done'
}
</script><a id="link">a link</a>`

let server, evil, victim, browser, page

const ask = async (path, options) => {
  const answer = await fetch(server.url + path, options)
  return answer.status === 204 ? null : answer.json()
}
const post = (path, body) =>
  ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

async function untouched() {
  const [maintenance, queue] = [await ask('/api/v1/system/maintenance'), await ask(`/api/v1/resources/queues/${QUEUE}`)]
  assert.equal(maintenance.popMaintenanceMode, false, 'pops are not paused')
  assert.equal(queue.messages?.total, 1, 'the queue is there, and nothing was pushed')
  const popped = await ask(`/api/v1/pop/queue/${QUEUE}`)
  assert.deepEqual(popped?.messages.map((message) => message.data), ['keep me'], 'the message is there')
  await post('/api/v1/ack', { ...popped.messages[0], status: 'retry' })
}

before(async () => {
  evil = await startPages({ '/': ATTACK })
  victim = await startPages({})
  server = await startServer()
  browser = await startBrowser('evil.example', 'rebind.example')
  await post('/api/v1/push', { items: [{ queue: QUEUE, payload: 'keep me' }] })
})

beforeEach(async () => {
  const context = await browser.newContext()
  page = await context.newPage()
  victim.reached.length = 0
})

after(async () => {
  for (const part of [browser && { stop: () => browser.close() }, server, victim, evil]) await part?.stop()
})

for (const [name, host] of [['another site', 'evil.example'], ['another port', '127.0.0.1'], ['localhost', 'localhost']]) {
  test(`a page of ${name} changes nothing`, async () => {
    await page.goto(`http://${host}:${evil.port}/`)

    // First a server that checks no origins: all attempts arrive there.
    await page.evaluate((target) => attack(target), `http://127.0.0.1:${victim.port}`)
    const arrived = victim.reached.map(({ method, url }) => `${method} ${url.split('?')[0]}`)
    await page.evaluate((target) => attack(target), server.url)

    for (const expected of [
      'POST /api/v1/push', 'POST /api/v1/system/maintenance/pop', 'OPTIONS /api/v1/push',
      `DELETE /api/v1/resources/queues/${QUEUE}`, `GET /api/v1/pop/queue/${QUEUE}`,
    ]) {
      assert.ok(arrived.includes(expected), `the browser lets through ${expected}: ${arrived}`)
    }
    await untouched()
  })
}

test('a page whose own name resolves to this machine gets no answer', async () => {
  const answer = await page.goto(`http://rebind.example:${server.port}/health`)
  const statuses = await page.evaluate(async (queue) => {
    const json = { 'content-type': 'application/json' }
    const tries = [
      fetch('/api/v1/messages'),
      fetch(`/api/v1/pop/queue/${queue}?autoAck=true`),
      fetch(`/api/v1/resources/queues/${queue}`, { method: 'DELETE' }),
      fetch('/api/v1/push', { method: 'POST', headers: json, body: JSON.stringify({ items: [{ queue }] }) }),
      fetch('/api/v1/system/maintenance/pop', { method: 'POST', headers: json, body: '{"enabled":true}' }),
    ]
    return Promise.all(tries.map(async (made) => (await made).status))
  }, QUEUE)

  assert.equal(answer.status(), 403)
  assert.equal((await answer.json()).code, 'foreign_host')
  assert.deepEqual(statuses, [403, 403, 403, 403, 403])
  await untouched()
})

test('a link leads to what only reads, and not to a pop', async () => {
  const follow = async (path) => {
    await page.goto(`http://evil.example:${evil.port}/`)
    await page.evaluate((href) => { document.getElementById('link').href = href }, server.url + path)
    const [answer] = await Promise.all([page.waitForResponse(server.url + path), page.click('#link')])
    return answer.status()
  }

  assert.equal(await follow('/health'), 200)
  assert.equal(await follow('/api/v1/resources/queues'), 200)
  assert.equal(await follow(POP), 403)
  await untouched()
})

test('a typed address and our own pages are served', async () => {
  const answer = await page.goto(`${server.url}/health`)
  const own = await page.evaluate(async () => {
    const headers = { 'content-type': 'application/json' }
    const items = [{ queue: 'own', payload: 'hello' }]
    const pushed = await fetch('/api/v1/push', { method: 'POST', headers, body: JSON.stringify({ items }) })
    const popped = await fetch('/api/v1/pop/queue/own?autoAck=true')
    return [pushed.status, (await popped.json()).messages[0].data]
  })

  assert.equal((await answer.json()).status, 'healthy')
  assert.deepEqual(own, [201, 'hello'])
})
