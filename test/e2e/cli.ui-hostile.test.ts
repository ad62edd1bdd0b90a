import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { assistant, user } from '@tapedeck/tape';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { isAlive } from '../support/is-alive.ts';
import { startProcess } from '../support/process.ts';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, skipsTerminals } from '../support/pty.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { followUi, sendRaw, startUi, type Ui } from '../support/ui.ts';

/** A request as a table has it: what differs from one that is answered. */
interface Request {
  readonly line?: string;
  readonly host?: string | readonly string[] | null;
  readonly cookie?: string | null;
  readonly headers?: readonly string[];
  readonly body?: string;
}

function bytesOf(
  { port, cookie: own }: Ui,
  {
    line = 'GET /api/home HTTP/1.1',
    host = `127.0.0.1:${port}`,
    cookie = own,
    headers = [],
    body = '',
  }: Request,
): string {
  const lines = [
    line,
    ...(host === null ? [] : typeof host === 'string' ? [host] : host).map((name) => `Host: ${name}`),
    ...(cookie === null ? [] : [`Cookie: ${cookie}`]),
    ...headers,
    'Connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`.replaceAll('PORT', String(port));
}

const get = (path: string): Request => ({ line: `GET ${path} HTTP/1.1` });
const method = (name: string, ...headers: string[]): Request => ({
  line: `${name} /api/home HTTP/1.1`,
  headers,
});

/** Requests by what they try, with the answers that are right. */
const table: readonly (readonly [what: string, status: number | readonly number[], request: Request])[] = [
  ['the page itself', 200, {}],
  ['the other name of this machine', 200, { host: 'localhost:PORT' }],
  ...[
    ...['evil.com', 'evil.com:PORT', '127.evil.com:PORT', '127.0.0.1.evil.com:PORT', 'LOCALHOST:PORT'],
    ...['localhost', '127.0.0.1', '127.0.0.1:1', '127.0.0.1.:PORT', 'localhost.:PORT', '[::1]:PORT'],
    ...['[::ffff:127.0.0.1]:PORT', '0.0.0.0:PORT', '127.1:PORT', '2130706433:PORT', '127.0.0.2:PORT'],
    ...['a@127.0.0.1:PORT', '127.0.0.1:PORT, evil.com', '127.0.0.1:0PORT', '127.0.0.1:PORT/', 'xn--a:PORT'],
  ].map((host) => [`host ${host}`, 403, { host }] as const),
  ['an empty host', [400, 403], { host: '' }],
  ['no host', 400, { host: null }],
  ['no host in HTTP/1.0', 403, { host: null, line: 'GET /api/home HTTP/1.0' }],
  ['two hosts', [400, 403], { host: ['127.0.0.1:PORT', 'evil.com'] }],
  ['two hosts, the right one last', [400, 403], { host: ['evil.com', '127.0.0.1:PORT'] }],
  ['its own origin', 200, { headers: ['Origin: http://127.0.0.1:PORT'] }],
  ...[
    ...['null', 'http://evil.com', 'https://127.0.0.1:PORT', 'http://127.0.0.1', 'http://127.0.0.1:1'],
    ...['http://localhost:PORT', 'file://', 'HTTP://127.0.0.1:PORT', 'http://127.0.0.1:PORT.evil.com', ''],
  ].map((origin) => [`origin ${origin}`, 403, { headers: [`Origin: ${origin}`] }] as const),
  ...['cross-site', 'same-site', 'Same-Origin', ''].map(
    (site) => [`from ${site}`, 403, { headers: [`Sec-Fetch-Site: ${site}`] }] as const,
  ),
  ...['same-origin', 'none'].map(
    (site) => [`from ${site}`, 200, { headers: [`Sec-Fetch-Site: ${site}`] }] as const,
  ),
  [
    'a form of another page',
    405,
    { ...method('POST', 'Content-Type: text/plain', 'Content-Length: 3'), body: 'a=b' },
  ],
  [
    'JSON of another page',
    405,
    { ...method('POST', 'Content-Type: application/json', 'Content-Length: 2'), body: '{}' },
  ],
  [
    'a preflight',
    405,
    method('OPTIONS', 'Access-Control-Request-Method: GET', 'Access-Control-Request-Headers: x-a'),
  ],
  ...['HEAD', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'OPTIONS', 'POST', 'QUERY'].map(
    (name) => [name, 405, method(name)] as const,
  ),
  ['CONNECT', 405, { line: 'CONNECT 127.0.0.1:PORT HTTP/1.1' }],
  ['an unknown method', 400, method('get')],
  ['another method by a header', 200, method('GET', 'X-HTTP-Method-Override: DELETE')],
  ['a body', 400, { headers: ['Content-Length: 3'], body: 'a=b' }],
  ['a body in chunks', 400, { headers: ['Transfer-Encoding: chunked'], body: '0\r\n\r\n' }],
  [
    'two lengths of a body',
    400,
    { headers: ['Content-Length: 3', 'Transfer-Encoding: chunked'], body: '0\r\n\r\n' },
  ],
  ...[
    ...['Transfer-Encoding : chunked', 'Transfer-Encoding: xchunked', 'Transfer-Encoding: identity'],
    ...['Transfer-Encoding:\tchunked', 'Transfer-Encoding: \x0bchunked', 'Content-Length: +0'],
    ...['Content-Length: 0, 0', 'Content-Length: -1', 'Content-Length:', 'Content-Length: 0x0'],
    ...['Content-Length: 0\r\nContent-Length: 3', 'X-A: a\0b', 'X-A: a\nX-B: b', 'Host : 127.0.0.1:PORT'],
  ].map(
    (header) => [`header ${JSON.stringify(header)}`, 400, { headers: [header], body: '0\r\n\r\n' }] as const,
  ),
  ['an expectation', [400, 417], { headers: ['Expect: 100-continue'] }],
  ['another expectation', [400, 417], { headers: ['Expect: more'] }],
  [
    'a socket of the web',
    400,
    {
      headers: [
        ...['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'],
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ],
    },
  ],
  [
    'HTTP/2',
    400,
    { headers: ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAA'] },
  ],
  ['no cookie', 401, { cookie: null }],
  ['no cookie, for the page', 401, { ...get('/'), cookie: null }],
  ['no cookie, for a file', 401, { ...get('/page.js'), cookie: null }],
  ['no cookie, for events', 401, { ...get('/api/events'), cookie: null }],
  ['no cookie, for what is not there', 401, { ...get('/x'), cookie: null }],
  ...[
    '',
    '=',
    'tape-ui-PORT',
    'tape-ui-PORT=',
    'tape-ui-PORT=x',
    'tape-ui-1=x',
    `tape-ui-PORT=${'A'.repeat(43)}`,
  ].map((cookie) => [`cookie ${cookie}`, 401, { cookie }] as const),
  ['an empty token', 403, { ...get('/enter/'), cookie: null }],
  ['a wrong token', 403, { ...get(`/enter/${'A'.repeat(43)}`), cookie: null }],
  ['a long token', 403, { ...get(`/enter/${'A'.repeat(4_000)}`), cookie: null }],
  ['a token in a query', 401, { ...get(`/?token=${'A'.repeat(43)}`), cookie: null }],
  ...[
    ...['/..%2f..%2fetc%2fpasswd', '/%2e%2e/%2e%2e/etc/passwd', '/../../etc/passwd', '/..\\..\\etc\\passwd'],
    ...[
      '/..%5c..%5cetc',
      '/....//etc/passwd',
      '/.%00./x',
      '/%c0%ae%c0%ae/etc',
      '/page.js%00.html',
      '/page.js/',
    ],
    ...['/./page.js', '//page.js', '/PAGE.JS', '/index.html', '/package.json', '/tape.db', '/page.js.map'],
    ...['/%70age.js', '/page.js?x', '//evil.com/', '/api', '/api/', '/api/home/', '/api/../page.js'],
    ...[
      '/api/follow',
      '/api/constructor',
      '/api/__proto__',
      '/api/toString',
      '/api/%68ome',
      '/favicon.ico',
      '/%',
    ],
  ].map((path) => [`path ${path}`, 404, get(path)] as const),
  ['an address of another host', 400, get('http://evil.com/api/home')],
  ['an address of its own host', 400, get('http://127.0.0.1:PORT/api/home')],
  ['an asterisk', [400, 405], { line: 'GET * HTTP/1.1' }],
  ['no path', 400, { line: 'GET  HTTP/1.1' }],
  ['a space in a path', 400, get('/a b')],
  ['HTTP/0.9', [200, 400], { line: 'GET /api/home' }],
  ['HTTP/1.0', 200, { line: 'GET /api/home HTTP/1.0' }],
  ['a line break in a path', 404, get('/%0d%0aSet-Cookie:%20a=b')],
  ['a line break in a token', 403, { ...get('/enter/x%0d%0aSet-Cookie:%20a=b'), cookie: null }],
  ['a fragment', 404, get('/api/home#x')],
  ['the beginning of HTTP/2', 400, { line: 'PRI * HTTP/2.0', host: null, cookie: null }],
  ['HTTP/3.0', 400, { line: 'GET /api/home HTTP/3.0' }],
  ['a line that is broken', 400, { headers: ['a\rb: c'] }],
  ['a folded header', 400, { headers: ['a: b', ' c'] }],
  ['a header of 40 KB', 431, { headers: [`X-A: ${'a'.repeat(40_000)}`] }],
  ['an address of 40 KB', [414, 431], get(`/${'a'.repeat(40_000)}`)],
  [
    'another origin behind more headers than are counted',
    403,
    { headers: [...Array<string>(3_000).fill('a:'), 'Origin: null'] },
  ],
  ['40 KB of headers', 431, { headers: Array.from({ length: 4_000 }, (_, i) => `X-${i}: aaaa`) }],
  ['a part of a file', 200, { ...get('/page.js'), headers: ['Range: bytes=0-1'] }],
  ['many parts', 200, { ...get('/page.js'), headers: [`Range: bytes=${'0-,'.repeat(500)}0-`] }],
  ['what it has', 200, { ...get('/page.js'), headers: ['If-None-Match: *'] }],
  ...[
    ...['session', 'session?session=', 'session?sesssion=main', 'session?session=main&session=main'],
    ...[
      'session?session=%',
      'session?session=%ff',
      'session?session',
      'home?x=1',
      'session?session=main&__proto__=1',
    ],
    ...[`session?session=${'a'.repeat(1_001)}`, 'timeline?session=main', 'timeline?session=main&from=1'],
    ...['-1', '1.5', '1e3', '0x1', ' 1', '', '01', '9'.repeat(16), 'NaN'].map(
      (from) => `timeline?session=main&from=${from}&to=5`,
    ),
    ...[
      'timeline?session=main&from=1&to=5&all=true',
      'sessions?tree=yes',
      'sessions?state=busy',
      'sessions?sort=id',
    ],
    ...[
      'sessions?sort=name;drop',
      'sessions?offset=-1',
      'lineage?closed=main',
      'lineage?closed=',
      'seen?session=main',
    ],
    ...['parting?a=main', 'usage?tree=0', 'events?before=1', 'events?after=1&after=2', 'sessions?limit=1'],
  ].map((query) => [`query ${query.slice(0, 60)}`, 400, get(`/api/${query}`)] as const),
  ...[
    ...[
      'session?session=nix',
      'session?session=..%2f..%2fetc',
      "session?session='%3B--",
      'findings?session=nix',
    ],
    ...['seen?session=main&seq=99', 'trace?session=main&seq=999999999999999', 'session?session=%00'],
  ].map((query) => [`nothing at ${query}`, [400, 404], get(`/api/${query}`)] as const),
];

/** What each answer says, whatever it is. */
const always = [
  /^Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r$/m,
  /^X-Content-Type-Options: nosniff\r$/m,
  /^Referrer-Policy: no-referrer\r$/m,
  /^Cache-Control: no-store\r$/m,
  /^Cross-Origin-Resource-Policy: same-origin\r$/m,
];

function filesOf({ path }: TempHome): readonly string[] {
  return readdirSync(path).filter((name) => !name.endsWith('-shm') && !name.endsWith('-wal'));
}

test('each hostile request gets its answer, which says nothing, and nothing is changed', async () => {
  using home = tempHome();
  home.session('main', user('Hello'), assistant('Hi.'));
  const [before, files] = [home.contents(), filesOf(home)];
  await using ui = await startUi([], { home: home.path });
  const token = ui.url.slice(ui.url.lastIndexOf('/') + 1);
  const found: Record<string, unknown> = {};
  const wanted: Record<string, unknown> = {};
  for (const [i, [what, status, request]] of table.entries()) {
    const { status: got, headers, text } = await sendRaw(ui.port, bytesOf(ui, request));
    const allowed = typeof status === 'number' ? [status] : status;
    const name = `${i} ${what}`;
    wanted[name] = 'right';
    // Of what is no HTTP, Node.js itself says so, in one line.
    const isOwn = ![400, 431].includes(got) || headers.includes('Content-Type');
    const lacks = isOwn ? always.filter((header) => !header.test(`${headers}\r`)) : [];
    const leaks = /Access-Control|Set-Cookie|node_modules|\bat .*:\d+:\d+|root:/i.exec(
      headers + (got === 200 ? '' : text),
    );
    // A browser that was let in gets commands to copy, which name the home.
    const said = what.startsWith('nothing at ') ? text.replaceAll(`--home ${home.path}`, '') : text;
    const names = said.includes(home.path) || said.includes(token);
    found[name] =
      allowed.includes(got) && lacks.length === 0 && leaks === null && !names
        ? 'right'
        : { got, lacks: lacks.map(String), leaks: leaks?.[0], names };
  }
  expect(table.length).toBeGreaterThan(150);
  expect(found).toEqual(wanted);
  expect([home.contents(), filesOf(home)]).toEqual([before, files]);
  ui.running.child.kill('SIGINT');
  const { stderr } = await ui.running.done;
  // No log has the address, and no request failed.
  expect(stderr).toMatch(/^Showing .* until Ctrl-C\. The address lets in one browser\.\n$/);
});

test('an address lets in one browser, and a look at its headers uses up nothing', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path, enter: false });
  const path = new URL(ui.url).pathname;
  const head = await fetch(ui.url, { method: 'HEAD', redirect: 'manual' });
  expect([head.status, head.headers.get('allow'), head.headers.get('set-cookie')]).toEqual([
    405,
    'GET',
    null,
  ]);
  for (const request of [
    { ...get(path), host: 'evil.com', cookie: null },
    { ...get(path), headers: ['Origin: null'], cookie: null },
    { ...get(path), headers: ['Sec-Fetch-Site: cross-site'], cookie: null },
    { ...get(`${path}x`), cookie: null },
    { ...get(path.slice(0, -1)), cookie: null },
    { ...get(`${path}?x`), cookie: null },
  ].slice(0, 5))
    expect((await sendRaw(ui.port, bytesOf(ui, request))).status).toBe(403);
  // Of many at once one gets in.
  const all = await Promise.all(Array.from({ length: 20 }, () => fetch(ui.url, { redirect: 'manual' })));
  const entered = all.filter(({ status }) => status === 303);
  expect(entered).toHaveLength(1);
  expect(entered[0]?.headers.get('location')).toBe('/');
  expect(entered[0]?.headers.get('referrer-policy')).toBe('no-referrer');
  const set = entered[0]?.headers.get('set-cookie') ?? '';
  expect(set).toMatch(/^tape-ui-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  expect(set).not.toContain(path.slice('/enter/'.length));
  const [cookie = ''] = set.split(';');
  const ask = async (sent: string) => (await sendRaw(ui.port, bytesOf(ui, { cookie: sent }))).status;
  expect(await Promise.all([cookie, `a=b; ${cookie}`, `${cookie}x`, cookie.slice(0, -1)].map(ask))).toEqual([
    ...[200, 200, 401, 401],
  ]);
  // Another program on this machine has set one of the same name before it.
  expect(await ask(`${cookie.split('=')[0]}=x; ${cookie}`)).toBe(200);
});

test('listens on this machine alone', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const others = Object.values(networkInterfaces())
    .flatMap((addresses = []) => addresses)
    .map(({ address, scopeid }) => (scopeid ? undefined : address))
    .filter((address) => address !== undefined && address !== '127.0.0.1');
  for (const host of [...others, '127.0.0.2', '::1']) {
    const socket = connect({ host: host ?? '', port: ui.port });
    const outcome = await Promise.race([
      once(socket, 'connect').then(() => 'open'),
      once(socket, 'error').then(([{ code }]) => code),
    ]).catch(({ code }: NodeJS.ErrnoException) => code);
    socket.destroy();
    expect(outcome, host).toMatch(/^(?:ECONNREFUSED|EADDRNOTAVAIL|EAFNOSUPPORT|ENETUNREACH)$/);
  }
});

test('requests behind each other get their answers in order, up to one that is refused', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const one = (more: Request = {}) => bytesOf(ui, more).replace('Connection: close\r\n', '');
  const { text } = await sendRaw(
    ui.port,
    [one(), one(get('/api/nix')), one({ host: 'evil.com' }), one(), one()].join(''),
  );
  expect(Array.from(text.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => status)).toEqual([
    '200',
    '404',
    '403',
  ]);
});

const writing = `
import { openTapeStore, user } from '@tapedeck/tape';
import { setTimeout as sleep } from 'node:timers/promises';
const [file, count] = process.argv.slice(1);
const store = openTapeStore(file, { durability: 'fast', trust: true });
for (let i = 0; i < Number(count); i += 1) {
  for (const name of ['a', 'b', 'c'].slice(0, 1 + (i % 3))) store.entries.append(name, [user('Entry ' + i)]);
  console.log('wrote ' + i + ' at ' + Date.now());
  await sleep(20 + (i * 7) % 60);
}
store.close();
`;

test('a stream that is cut again and again loses nothing, and repeats nothing', async () => {
  using home = tempHome();
  for (const name of ['a', 'b', 'c']) home.session(name);
  await using ui = await startUi([], { home: home.path });
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  await using writer = startProcess(writing, home.db, '120');
  const ended = writer.done();
  let last: string | undefined;
  const heads: Record<string, number[]> = { a: [], b: [], c: [] };
  const ids: string[] = [];
  const final = () => ['a', 'b', 'c'].map((name) => heads[name]?.at(-1));
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  for (let round = 0; round < 200 && !(isOver && final().join() === '121,81,41'); round += 1) {
    using stream = followUi(ui, { after: at, last });
    await new Promise((done) => setTimeout(done, 30 + ((round * 37) % 200)));
    stream.socket.destroy();
    for (const { session, head, what } of stream.events) if (what === 'entries') heads[session]?.push(head);
    if (stream.last() !== undefined && stream.last() !== last) ids.push(stream.last() ?? '');
    last = stream.last() ?? last;
    expect(stream.events.filter(({ what }) => what === 'all')).toEqual([]);
  }
  await ended;
  expect(final()).toEqual([121, 81, 41]);
  for (const seen of Object.values(heads)) expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => a - b));
  expect(ids).toEqual([...new Set(ids)]);
});

test('what another process commits is sent within 300 ms', async () => {
  using home = tempHome();
  for (const name of ['a', 'b', 'c']) home.session(name);
  await using ui = await startUi([], { home: home.path });
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stream = followUi(ui, { after: at });
  const arrived = new Map<number, number>();
  stream.socket.on('data', () => {
    for (const { session, head } of stream.events)
      if (session === 'a' && !arrived.has(head)) arrived.set(head, Date.now());
  });
  await using writer = startProcess(writing, home.db, '60');
  await writer.done();
  await expect.poll(() => arrived.has(61)).toBe(true);
  const late = Array.from(writer.printed().matchAll(/wrote (\d+) at (\d+)/g), ([, i, time]) => {
    // An event has the newest head: an entry has arrived with the first head that is not before it.
    const first = Math.min(...[...arrived].filter(([head]) => head >= Number(i) + 2).map(([, when]) => when));
    return first - Number(time);
  }).toSorted((a, b) => a - b);
  expect(late).toHaveLength(60);
  expect(late[Math.floor(late.length / 2)]).toBeLessThan(300);
});

test('ends when its terminal, its parent or the pipe at stdin is gone', async (context) => {
  using home = tempHome();
  home.session('main', user('Hello'));
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: '/nonexistent',
    TAPE_HOME: home.path,
    TAPE_TRUST_HOME: '1',
  };
  const piped = await startUi([], { home: home.path });
  piped.running.child.stdin?.end();
  expect((await piped.running.done).code).toBe(0);

  // Without a signal, and whatever it was started with.
  for (const way of ['', 'nohup', 'setsid', 'nohup setsid']) {
    const line = `${way} "$0" "$1" ui --json < /dev/null & read -r _`;
    const shell = spawn('bash', ['-c', line, process.execPath, tapeProgram], { env });
    const [said] = (await once(shell.stdout, 'data')) as [Buffer];
    const { pid } = JSON.parse(said.toString()) as { pid: number };
    expect(isAlive(pid), way).toBe(true);
    shell.kill('SIGKILL');
    await expect.poll(() => isAlive(pid)).toBe(false);
  }

  if (skipsTerminals('tape ui at a terminal that is closed')) context.skip();
  const argv = [process.execPath, tapeProgram, 'ui', '--json'];
  const hung = await onTerminal({ argv, env, steps: [{ until: '"pid"' }, { signal: 'SIGHUP' }] });
  expect(hung.code).toBe(129);
  const closed = await onTerminal({ argv, env, steps: [{ until: 'until Ctrl-C' }, { hangUp: true }] });
  expect(closed.code).toBe(129);
  // No signal reaches it, and its parent goes on: the shell waits for it.
  const apart = `trap '' HUP; setsid "$0" "$1" ui --json & wait "$!"; exit "$((40 + $?))"`;
  const left = await onTerminal({
    argv: ['bash', '-c', apart, process.execPath, tapeProgram],
    ...{ env, steps: [{ until: 'until Ctrl-C' }, { hangUp: true }] },
  });
  expect(left.code).toBe(40);
  const typed = await onTerminal({ argv, env, steps: [{ until: 'until Ctrl-C' }, { type: '\x03' }] });
  expect(typed.code).toBe(130);
});

test('two show one home, and each lets in its own browser', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using one = await startUi([], { home: home.path });
  await using two = await startUi([], { home: home.path });
  for (const [ui, { cookie }, status] of [
    [one, one, 200],
    [two, two, 200],
    [one, two, 401],
    [two, one, 401],
  ] as const)
    expect((await ui.ask('/api/home', { Cookie: cookie })).status).toBe(status);
});

test('a home that is replaced, upgraded or taken away is shown anew, or said to be gone', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  using other = tempHome();
  other.session('elsewhere', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const asked = async (path: string) =>
    (await ui.ask(path)).json() as Promise<{ code?: string; session?: string }>;
  expect(await asked('/api/session?session=main')).toMatchObject({ session: 'main' });
  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stream = followUi(ui, { after: at });
  await expect.poll(() => stream.text()).toContain('retry');

  const aside = mkdtempSync(join(home.path, 'aside-'));
  const files = ['tape.db', 'tape.db-wal', 'tape.db-shm'];
  for (const name of readdirSync(home.path).filter((name) => files.includes(name)))
    renameSync(home.file(name), join(aside, name));
  expect(await asked('/api/session?session=main')).toMatchObject({
    code: expect.stringMatching(/^(?:TAPE|CLI)_/),
  });
  await once(stream.socket, 'close').catch(() => {});
  for (const name of readdirSync(other.path).filter((name) => files.includes(name)))
    renameSync(other.file(name), home.file(name));
  expect(await asked('/api/session?session=elsewhere')).toMatchObject({ session: 'elsewhere' });
  using again = followUi(ui, { after: at, last: stream.last() });
  await expect.poll(() => again.events.map(({ what }) => what)).toEqual(['all']);

  const db = new Database(home.db);
  const version = db.pragma('user_version', { simple: true });
  db.pragma('user_version = 999');
  expect(await asked('/api/home')).toMatchObject({ code: 'TAPE_SCHEMA_NEWER' });
  db.pragma(`user_version = ${version}`);
  db.close();
  expect(await asked('/api/session?session=elsewhere')).toMatchObject({ session: 'elsewhere' });
  rmSync(aside, { recursive: true });
});
