// The parts of a test in a real browser: a server of its own, pages of other origins, and a headless Chromium.
//
// Everything is started here and ends with the test that started it. The server has a free port and a private PostgreSQL in a
// temporary directory. Inside the browser the names of the test resolve to this machine.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

// With a first initdb on a busy machine; it usually takes a few seconds.
const START_MS = 90_000
const LISTENING = 'listening on http://'
const ARGUMENTS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

/** A running `reveille serve`. `stop` ends it and removes its directory. */
export async function startServer(...flags) {
  const home = await mkdtemp(join(tmpdir(), 'reveille-browser-'))
  // Root's private server runs as another user, who must be able to enter.
  await chmod(home, 0o711)
  const log = await open(join(home, 'log'), 'w')
  // The settings of the user who runs this must not matter; only PostgreSQL's binaries may be named.
  const ours = (key) => key !== 'DATABASE_URL' && (!key.startsWith('REVEILLE_') || key === 'REVEILLE_PG_BIN')
  const environment = Object.fromEntries(Object.entries(process.env).filter(([key]) => ours(key)))
  const serve = ['serve', '--listen', '127.0.0.1:0', '--data-dir', join(home, 'postgres'), ...flags]
  const child = spawn(process.env.REVEILLE_PROGRAM, serve, {
    env: { ...environment, HOME: home }, stdio: ['ignore', 'pipe', log.fd],
  })
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    await log.close()
    await rm(home, { recursive: true, force: true })
  }
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS)
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [''])])
  clearTimeout(late)
  if (!line.startsWith(LISTENING)) {
    const words = await readFile(join(home, 'log'), 'utf8')
    await stop()
    throw new Error(`the server did not start; it printed ${JSON.stringify(line)} and\n${words}`)
  }
  const address = line.slice(LISTENING.length)
  return { address, port: Number(address.split(':').at(-1)), url: `http://${address}`, stop }
}

/**
 * A foreign server. It serves `pages` by their paths, and records every other request that reached it: so a test can
 * distinguish an attack that was refused from one that the browser never sent.
 */
export async function startPages(pages) {
  const reached = []
  const server = createServer((request, response) => {
    const page = pages[new URL(request.url, 'http://x').pathname]
    if (page === undefined) reached.push({ method: request.method, url: request.url, headers: request.headers })
    response.setHeader('content-type', page === undefined ? 'application/json' : 'text/html')
    // As permissive as possible: a request that does not arrive here was blocked by the browser itself.
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-allow-headers', '*')
    response.setHeader('access-control-allow-methods', '*')
    request.resume().on('end', () => response.end(page ?? '{}'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { port: server.address().port, reached, stop }
}

/** A headless Chromium with an empty profile, in which each of these names is this machine. */
export async function startBrowser(...names) {
  const { chromium } = createRequire(join(process.env.REVEILLE_NODE_MODULES, 'x.js'))('playwright-core')
  const rules = names.map((name) => `MAP ${name} 127.0.0.1`).join(', ')
  return chromium.launch({
    executablePath: process.env.REVEILLE_CHROMIUM,
    headless: true,
    args: [...ARGUMENTS, `--host-resolver-rules=${rules}`],
  })
}
