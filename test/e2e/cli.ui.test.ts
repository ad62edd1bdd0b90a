import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { jsonError } from '../support/cli.ts';
import { isAlive } from '../support/is-alive.ts';
import { tempHome } from '../support/temp-home.ts';
import { followUi, sendRaw, startUi } from '../support/ui.ts';

test('serves the page to the browser that opens its address first, and follows what others write', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  const before = home.contents();
  await using ui = await startUi([], { home: home.path });
  expect(ui).toMatchObject({ pid: ui.running.child.pid });

  // The address is used up; the cookie that it was exchanged for is what counts.
  expect((await fetch(ui.url, { redirect: 'manual' })).status).toBe(403);
  expect((await fetch(`http://127.0.0.1:${ui.port}/`)).status).toBe(401);
  const page = await ui.ask('/');
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const html = await page.text();
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=/);
  for (const [, path = ''] of html.matchAll(/(?:src|href)="\.(\/[^"]*)"/g))
    expect((await ui.ask(path)).status).toBe(200);

  const { at } = (await (await ui.ask('/api/home')).json()) as { at: string };
  using stream = followUi(ui, { after: at });
  await expect.poll(() => stream.text()).toContain('retry: ');
  // How often the page will hear of the server.
  await expect.poll(() => stream.text()).toMatch(/event: beat\ndata: \d+\n\n/);
  using writer = home.open();
  writer.entries.append('main', [user('More')]);
  await expect.poll(() => stream.events).toMatchObject([{ what: 'entries', head: 3 }]);
  expect(before.rows.entry).toBe(2);

  // A second one of the same home, on a port that is taken and on one that is free.
  const taken = await home.process(['ui', '--port', String(ui.port), '--json']);
  expect(taken.code).toBe(1);
  expect(jsonError(taken)).toMatchObject({ code: 'CLI_CANNOT_LISTEN', data: { port: ui.port } });
  ui.running.child.kill('SIGINT');
  expect((await ui.running.done).code).toBe(130);
  expect(isAlive(ui.pid)).toBe(false);
});

test('refuses ports that are none, and homes that are not there', async () => {
  using home = tempHome();
  for (const port of ['-1', '65536', '1.5'])
    expect(jsonError(await home.here(['ui', `--port=${port}`, '--json']))).toMatchObject({
      code: 'CLI_USAGE',
    });
  expect(jsonError(await home.here(['ui', '--json']))).toMatchObject({ code: 'CLI_NOT_FOUND' });
});

test('refuses what another page, another host or no browser of ours asks', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using ui = await startUi([], { home: home.path });
  const own = `127.0.0.1:${ui.port}`;
  const ask = async (line: string, ...headers: string[]) =>
    await sendRaw(
      ui.port,
      [line, ...headers, `Cookie: ${ui.cookie}`, 'Connection: close', '\r\n'].join('\r\n'),
    );
  const statuses = await Promise.all([
    ask('GET /api/home HTTP/1.1', `Host: ${own}`),
    ask('GET /api/home HTTP/1.1', `Host: evil.com:${ui.port}`),
    ask('GET /api/home HTTP/1.1', `Host: ${own}`, 'Origin: null'),
    ask('GET /api/home HTTP/1.1', `Host: ${own}`, 'Sec-Fetch-Site: cross-site'),
    ask('POST /api/home HTTP/1.1', `Host: ${own}`, 'Content-Type: text/plain', 'Content-Length: 0'),
    ask('GET /..%2f..%2fetc/passwd HTTP/1.1', `Host: ${own}`),
    ask('GET /api/session HTTP/1.1', `Host: ${own}`),
    ask('GET /api/session?session=nix HTTP/1.1', `Host: ${own}`),
  ]);
  expect(statuses.map(({ status }) => status)).toEqual([200, 403, 403, 403, 405, 404, 400, 404]);
});
