import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { SessionInfo, TimelineItem } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useAsked, useCalmly, useChanges, useSource } from '../data/data.tsx';
import { Toggle } from '../parts/choices.tsx';
import { Commands } from '../parts/command.tsx';
import { State } from '../parts/glyph.tsx';
import { Heading } from '../parts/heading.tsx';
import { Loading, NotHere } from '../parts/loading.tsx';
import { counted, grouped } from '../parts/numbers.tsx';
import { Refused } from '../parts/refused.tsx';
import { Blocks } from '../reading/blocks.ts';
import { Feed } from '../reading/feed.tsx';
import { FindingLines } from '../reading/findings.tsx';
import { type FindingsByPlace, placeKey } from '../reading/findings-at.ts';
import { PrintedFeed } from '../reading/printed-feed.tsx';
import { usePrinted } from '../reading/printing.ts';
import { toPrint } from '../reading/to-print.ts';
import { addressOf } from '../route.ts';

/** How long a session is not checked again, at least: a check reads all of it. In milliseconds. */
const checkPause = 3_000;

/** Findings of a session that stand at no position of it; its checks have all of them. */
const findingsMax = 5;

interface SessionOptions {
  readonly session: string;
  readonly seq?: number | undefined;
  readonly go: Go;
}

/** The timeline of a session, at a position of it. */
export function Session({ session, seq, go }: SessionOptions) {
  const { value: info, error, again } = useAsked(async (data) => await data.session({ session }), session);
  return (
    <>
      <SessionHead session={session} info={info} />
      <NotHere {...{ value: info, error, again }} />
      {info !== undefined && <Timeline key={info.id} info={info} seq={seq} go={go} />}
    </>
  );
}

function Timeline({ info, seq, go }: Omit<SessionOptions, 'session'> & { readonly info: SessionInfo }) {
  const { data, home } = useSource();
  const { session, id, floor, head, base, tone } = info;
  const [all, setAll] = useState(false);
  const [hidden, setHidden] = useState(false);
  const [round, changed] = useReducer((n: number, _: undefined) => n + 1, 0);
  const [attempt, askAgain] = useReducer((n: number, _: undefined) => n + 1, 0);
  const queryFor = (from: number, to: number) => ({
    ...{ session, from, to },
    ...(all && { all }),
    ...(hidden && { hidden }),
  });
  const blocks = useMemo(
    () =>
      new Blocks(
        async (from, to) => await data.timeline(queryFor(from, to)),
        { floor, head },
        () => changed(undefined),
      ),
    [data, session, all, hidden, attempt],
  );
  // An address can name what is hidden, or is no part of the conversation.
  const reveal = async (at: number) => {
    const shown = async (more: object) => (await data.timeline({ ...queryFor(at, at), ...more })).items;
    const isInside = ({ hides }: TimelineItem) => hides !== undefined && hides.from <= at && at <= hides.to;
    if (!hidden && (await shown({})).some(isInside)) setHidden(true);
    else if (!all && (await shown({ all: true })).some((item) => item.seq === at)) setAll(true);
  };
  const view = useRef(floor + 1);
  const printed = usePrinted(() =>
    toPrint((from, to) => data.timelineNow(queryFor(from, to)), {
      floor,
      head: blocks.head,
      at: view.current,
    }),
  );
  const target = useMemo(() => {
    if (seq !== undefined) return { seq, isMarked: seq > floor && seq <= head };
    // What goes on is read from its end, what is inherited is not read first.
    return { seq: tone === 'open' ? head : base + 1, isMarked: false };
  }, [session, seq, all, hidden]);
  const freshHead = useRef(head);
  const grow = useCalmly(() => {
    blocks.again(freshHead.current);
    changed(undefined);
  });
  useChanges((event) => {
    const isAll = event.what === 'all';
    if (!isAll && event.id !== id && event.parent !== session) return;
    if (event.id === id) freshHead.current = Math.max(freshHead.current, event.head);
    grow();
  });
  useEffect(() => blocks.again(head), [head]);
  const findings = useFindings(session);

  return (
    <>
      <div class="reading-tools tools">
        {home.isLive && <Toggle label="All entries" isOn={all} turn={() => setAll(!all)} />}
        <Toggle label="Hidden branches" isOn={hidden} turn={() => setHidden(!hidden)} />
        <span class="soft" role="status">
          {head === floor ? 'no entries' : `@${grouped(floor + 1)}–${grouped(blocks.head)}`}
        </span>
        <button
          type="button"
          class="toggle"
          onClick={() => print()}
          title="Prints the whole session, unfolded"
        >
          Print
        </button>
      </div>
      {info.waiting.length > 0 && <Waiting info={info} />}
      <FindingLines findings={(findings.get(placeKey(session)) ?? []).slice(0, findingsMax)} />
      {blocks.error !== undefined && (
        <Refused
          error={blocks.error}
          again={() => {
            blocks.again();
            changed(undefined);
          }}
        />
      )}
      {seq !== undefined && (seq > blocks.head || seq <= floor) && (
        <p class="notice" role="status">
          There is no @{grouped(seq)}: this session {seq > blocks.head ? 'ends' : 'begins'} at @
          {grouped(seq > blocks.head ? blocks.head : floor + 1)}.
        </p>
      )}
      {blocks.loaded === 0 && blocks.error === undefined && head > floor && (
        <Loading again={() => askAgain(undefined)} />
      )}
      {head === floor ? (
        <p class="empty">Nothing was said yet.</p>
      ) : (
        <Feed {...{ info, blocks, round, target, findings, reveal, view, go }} />
      )}
      {printed !== undefined && <PrintedFeed {...{ info, printed, findings }} />}
    </>
  );
}

/** What a check finds in a session and in what it inherits, by place; the page reads it when the timeline is drawn, and now and then. */
function useFindings(session: string): FindingsByPlace {
  const { home } = useSource();
  const { value } = useAsked(
    async (data) => {
      // A file has them.
      if (home.isLive) await new Promise((resolve) => setTimeout(resolve, 600));
      return await data.findings({ session });
    },
    session,
    { pause: checkPause },
  );
  return useMemo(() => Map.groupBy(value?.findings ?? [], (one) => placeKey(one.session, one.seq)), [value]);
}

/** The head of the page of a session, which is there before what is known of it: its title has the focus then. */
function SessionHead({
  session,
  info,
}: {
  readonly session: string;
  readonly info: SessionInfo | undefined;
}) {
  return (
    <Heading title={<span class="session-name">{info?.name ?? info?.session ?? session}</span>}>
      {info !== undefined && <AboutSession info={info} />}
    </Heading>
  );
}

function AboutSession({ info }: { readonly info: SessionInfo }) {
  const {
    session,
    kind,
    state,
    tone,
    about,
    parent,
    origin,
    base,
    merged,
    messages,
    tokens,
    commands,
    anchors,
    aliases,
  } = info;
  const { data } = useSource();
  const toDiff = parent === undefined ? undefined : ({ page: 'diff', a: parent, b: session } as const);
  return (
    <>
      <State state={state} tone={tone} />
      {kind !== 'session' && <span class="chip">{kind}</span>}
      {aliases.map((alias) => (
        <span key={alias} class="chip" title="Alias">
          {alias}
        </span>
      ))}
      <span class="soft numbers">
        {counted(messages, 'message')}, {counted(tokens, 'token')}
      </span>
      {origin !== undefined ? (
        <a href={addressOf({ page: 'session', session: origin, seq: base })} title="Where it was forked">
          ← {origin}@{base}
        </a>
      ) : (
        parent !== undefined && (
          <a href={addressOf({ page: 'session', session: parent })} title="Its parent">
            ← {parent}
          </a>
        )
      )}
      {merged !== undefined && (
        <a
          href={addressOf({ page: 'session', session: merged.into, seq: merged.seq })}
          title={`${merged.state} there`}
        >
          → {merged.into}@{merged.seq}
          {merged.undone === true && ' (undone)'}
        </a>
      )}
      <div class="tools">
        {anchors.length > 0 && (
          <details class="legend">
            <summary>Anchors</summary>
            <ul>
              {anchors.toReversed().map(({ seq, name, shape }) => (
                <li key={seq}>
                  <a href={addressOf({ page: 'session', session, seq })}>
                    {name} <span class="faint">@{seq}</span>
                  </a>
                  {shape !== 'anchor' && <span class="chip">{shape}</span>}
                </li>
              ))}
            </ul>
          </details>
        )}
        <details class="legend">
          <summary>Commands</summary>
          <div class="sheet-of-commands">
            <Commands commands={commands} />
          </div>
        </details>
        <a href={addressOf({ page: 'graph', session })}>Lineage</a>
        {toDiff !== undefined && data.has(toDiff) && <a href={addressOf(toDiff)}>Diff</a>}
        {data.has({ page: 'usage', session }) && <a href={addressOf({ page: 'usage', session })}>Usage</a>}
        <a href={addressOf({ page: 'check', session })}>Check</a>
      </div>
      {about !== '' && <p class="about">{about}</p>}
    </>
  );
}

/** Waiting calls that the reader has folded: they stay so until others wait. */
const folded = new Set<string>();

/** The calls that wait, of the session and of those below it, with what answers them. */
function Waiting({ info: { session: own, waiting } }: { readonly info: SessionInfo }) {
  const key = [own, ...waiting.map(({ session, call }) => `${session} ${call}`)].join(' ');
  return (
    <details
      class="waiting-calls"
      open={!folded.has(key)}
      onToggle={({ currentTarget: { open } }) => (open ? folded.delete(key) : folded.add(key))}
    >
      <summary>{counted(waiting.length, 'call waits', 'calls wait')}</summary>
      <ul>
        {waiting.map(({ session, seq, call, tool, what, claims, commands }) => (
          <li key={`${session} ${call}`}>
            <a href={addressOf({ page: 'session', session, seq })}>
              {session === own ? '' : session}@{seq}
            </a>{' '}
            <code>{claims[0] ?? tool}</code> <span class="tone-open">{what}</span>
            <Commands commands={commands} />
          </li>
        ))}
      </ul>
    </details>
  );
}
