import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { LineageRow, PageEvent, SessionRow, Tone } from '@tapedeck/cli/internal';
import { closeRows } from '../../packages/cli/ui/src/data/close-rows.ts';
import { root } from './imports.ts';

/** The page with data that are made up, to be looked at, and tested, without a home. */
export interface MadeUp {
  readonly sessions: readonly SessionRow[];
  readonly lineage: readonly LineageRow[];
}

const words = [
  'Check the release notes against the changelog',
  'Find out why the nightly import is slow',
  'Review the permissions of the deploy tool',
  'Summarise the design of the outbox',
  'Port the tests of the parser to the new reader',
  'Answer what customers wrote about invoices',
  'Rename the settings of the mailer, with a way back',
  'Write the migration for the usage table',
];
const states: readonly (readonly [string, Tone])[] = [
  ['merged', 'good'],
  ['merged', 'good'],
  ['merged', 'good'],
  ['merged, failed', 'bad'],
  ['running', 'open'],
  ['waiting', 'open'],
  ['failed', 'bad'],
  ['interrupted', 'bad'],
  ['completed', 'good'],
  ['active', 'plain'],
  ['discarded', 'bad'],
];
const parts = ['plan', 'review', 'tests', 'docs', 'search', 'notes', 'fix', 'bench'];

/** So many sessions, in trees of up to a few dozen. */
export function madeUp(count: number, now = Date.now()): MadeUp {
  let seed = 42;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const sessions: SessionRow[] = [];
  const lineage: LineageRow[] = [];
  const at = () =>
    new Date(
      now - sessions.length * 40_000_000 * (sessions.length / count) ** 2 - random() * 9e6,
    ).toISOString();

  const add = (name: string, parent: SessionRow | undefined, lanes: readonly boolean[]) => {
    const depth = lanes.length;
    const [state, tone] =
      parent === undefined
        ? random() < 0.2
          ? (['running', 'open'] as const)
          : (['active', 'plain'] as const)
        : pick(states);
    const base = parent === undefined ? 0 : Math.floor(random() * parent.head);
    const children =
      depth > 4
        ? 0
        : parent === undefined
          ? Math.floor(random() * 7)
          : random() < 0.3
            ? Math.floor(random() * 5)
            : 0;
    const head = base + 2 + Math.floor(random() * 90);
    const row: SessionRow = {
      session: name,
      id: `01J${String(sessions.length).padStart(23, '0')}`,
      kind: parent === undefined ? 'session' : random() < 0.85 ? 'subagent' : 'branch',
      state,
      tone,
      about: pick(words),
      ...(parent !== undefined && { parent: parent.session }),
      base,
      head,
      messages: head - base,
      tokens: Math.floor(random() ** 3 * 900_000),
      children,
      lastMessageAt: at(),
      createdAt: at(),
      depth,
    };
    sessions.push(row);
    const anchors = parent === undefined ? Math.floor(random() * 3) : random() < 0.2 ? 1 : 0;
    const isMerged = parent !== undefined && state.startsWith('merged');
    lineage.push({
      ...{ depth, lanes, shape: 'session', label: name, session: name, id: row.id },
      ...{
        kind: row.kind,
        ...(parent !== undefined && { parent: parent.session }),
        state,
        tone,
        base,
        head,
        about: row.about,
        at: row.lastMessageAt ?? row.createdAt,
        sessions: 1,
      },
      standing: isMerged ? 'merged' : tone === 'bad' ? 'ended' : 'open',
      merges: isMerged
        ? [{ child: name, range: [base + 1, head], into: parent.session, seq: base + 3, state: 'merged' }]
        : [],
    });
    const items = children + anchors;
    for (let i = 0; i < items && sessions.length < count; i += 1) {
      const below = [...lanes, i < items - 1 && sessions.length < count - 1];
      if (i % 2 === 1 && i / 2 < anchors)
        lineage.push({
          ...{
            depth: depth + 1,
            lanes: below,
            label: `${pick(['plan', 'compaction', 'release 2.4'])} @${base + 1}`,
          },
          ...{
            shape: random() < 0.6 ? 'anchor' : 'handoff',
            session: name,
            seq: base + 1,
            id: row.id,
          },
          sessions: 0,
        });
      else add(`${name}.${pick(parts)}-${i + 1}`, row, below);
    }
  };
  for (let i = 0; sessions.length < count; i += 1)
    add(i === 0 ? 'main' : `${pick(parts)}-${i}`, undefined, []);
  return { sessions, lineage };
}

function sortedBy(rows: readonly SessionRow[], sort: string | null): readonly SessionRow[] {
  const flat = rows.map((row) => ({ ...row, depth: 0 }));
  if (sort === 'name') return flat.sort((a, b) => a.session.localeCompare(b.session));
  if (sort === 'tokens' || sort === 'messages') return flat.sort((a, b) => b[sort] - a[sort]);
  return flat.sort((a, b) => (b.lastMessageAt ?? '').localeCompare(a.lastMessageAt ?? ''));
}

/** Serves the page with these data. Events are sent by `tell`. */
export function servePage(
  { sessions, lineage }: MadeUp,
  { port = 0 } = {},
): Promise<{
  readonly url: string;
  readonly server: Server;
  readonly tell: (event: PageEvent) => void;
  /** What was asked, in order. */
  readonly asked: readonly string[];
  readonly sessions: readonly SessionRow[];
}> {
  const asked: string[] = [];
  const followers = new Set<(event: PageEvent) => void>();
  const types = { html: 'text/html', css: 'text/css', js: 'text/javascript' };
  const assets = new Map(
    ['index.html', 'page.css', 'page.js'].map((name) => [`/${name === 'index.html' ? '' : name}`, name]),
  );
  const paged = <T>(rows: readonly T[], query: URLSearchParams, isCounted: boolean) => {
    const offset = Number(query.get('offset') ?? 0);
    const end = offset + 200;
    return {
      rows: rows.slice(offset, end),
      ...(isCounted && { total: rows.length }),
      ...(end < rows.length && { next: end }),
    };
  };
  const answers: Readonly<Record<string, (query: URLSearchParams) => unknown>> = {
    home: () => ({
      title: 'billing',
      version: '0.1.0',
      isLive: true,
      sessions: sessions.length,
      at: '1.1',
    }),
    sessions: (query) => {
      const find = query.get('find')?.toLowerCase() ?? '';
      const found = sessions.filter(
        (row) =>
          `${row.session} ${row.about}`.toLowerCase().includes(find) &&
          (query.get('kind') ?? row.kind) === row.kind &&
          (query.get('state') === null ||
            (query.get('state') === 'open'
              ? row.tone === 'open'
              : query.get('state') === 'merged'
                ? row.state.startsWith('merged')
                : row.tone === 'bad')),
      );
      const isFiltered = ['find', 'state', 'tree'].some((name) => query.has(name));
      return paged(query.has('tree') ? found : sortedBy(found, query.get('sort')), query, !isFiltered);
    },
    lineage: (query) => {
      const name = query.get('session') ?? '';
      const first = lineage.findLastIndex(
        (row, i) => row.depth === 0 && i <= lineage.findIndex(({ session }) => session === name),
      );
      const end = lineage.findIndex((row, i) => row.depth === 0 && i > first);
      const rows = name === '' ? lineage : lineage.slice(first, end < 0 ? undefined : end);
      const left = closeRows(rows, query.get('closed')?.split(',') ?? []);
      return { ...paged(left, query, name !== ''), command: `tape graph ${name}`.trim() };
    },
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    response.setHeader(
      'Content-Security-Policy',
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const name = assets.get(pathname);
    if (name !== undefined) {
      response.setHeader('Content-Type', types[name.split('.')[1] as keyof typeof types]);
      response.end(readFileSync(join(root, 'packages/cli/ui-dist', name)));
      return;
    }
    asked.push(`${pathname}?${searchParams}`);
    if (pathname === '/api/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      const tell = (event: PageEvent) =>
        response.write(`id: ${event.at}\ndata: ${JSON.stringify([event])}\n\n`);
      followers.add(tell);
      request.on('close', () => followers.delete(tell));
      return;
    }
    const answer = answers[pathname.replace('/api/', '')];
    response.writeHead(answer === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    response.end(
      JSON.stringify(
        answer?.(searchParams) ?? { code: 'UI_NO_SUCH_ANSWER', message: `Nothing answers ${pathname}` },
      ),
    );
  });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}/`;
      const tellAll = (event: PageEvent) => {
        for (const tell of followers) tell(event);
      };
      resolve({ url, server, asked, sessions, tell: tellAll });
    });
  });
}
