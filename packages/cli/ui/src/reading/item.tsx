import type { ComponentChildren } from 'preact';
import type { Finding, TimelineItem, WaitingCall } from '../../../src/page/data.ts';
import { useSource } from '../data/data.tsx';
import { CommandLine, Commands } from '../parts/command.tsx';
import { State } from '../parts/glyph.tsx';
import { Ago, counted, grouped } from '../parts/numbers.tsx';
import { addressOf } from '../route.ts';
import { FindingLines } from './findings.tsx';
import { Fold } from './fold.tsx';
import { HiddenItems } from './hidden-items.tsx';
import { PartOf } from './part.tsx';

/** What an item is drawn with. */
interface ItemOptions {
  readonly session: string;
  readonly item: TimelineItem;
  readonly waiting?: readonly WaitingCall[];
  /** What a check found there. */
  readonly findings?: readonly Finding[];
  /** Where two timelines are on a page, the one that it is of: what is folded is folded there. */
  readonly scope?: string;
}

/** An item of a timeline: what it is, what it says, and what can be done there. */
export function Item({ session, item, waiting = [], findings = [], scope = '' }: ItemOptions) {
  const { seq, kind, parts } = item;
  return (
    <>
      <a
        class="seq"
        href={addressOf({ page: 'session', session, seq })}
        title={`Position ${seq}`}
        tabIndex={-1}
      >
        {seq}
      </a>
      <div class="body">
        {kind === 'forks' ? (
          <Forks item={item} />
        ) : (
          <>
            <ItemHead item={item} session={session} scope={scope} />
            <About item={item} session={session} scope={scope} />
            {parts.map((part, i) => (
              <PartOf key={i} part={part} id={`${scope}${seq}.${i}`} {...{ session, waiting }} />
            ))}
          </>
        )}
        <FindingLines findings={findings} />
      </div>
    </>
  );
}

function ItemHead({
  item,
  session,
  scope,
}: Pick<ItemOptions, 'item' | 'session'> & { readonly scope: string }) {
  const { seq, kind, at, model, tokens, seen, hiddenBy, aside, commands, inherited, owner } = item;
  const isSaid = kind === 'message' || kind === 'result';
  const { data } = useSource();
  const toSeen = { page: 'seen', session, seq } as const;
  const toTrace = { page: 'trace', session, seq } as const;
  return (
    <header class="item-head">
      <span class="who">{nameOf(item)}</span>
      {aside === true && <span class="chip">not typed</span>}
      {model !== undefined && <span class="soft model">{model}</span>}
      {hiddenBy !== undefined && hiddenBy !== seq && (
        <a class="chip" href={addressOf({ page: 'session', session, seq: hiddenBy })}>
          hidden by @{hiddenBy}
        </a>
      )}
      {inherited && <span class="faint of">of {owner}</span>}
      <span class="ends">
        {tokens !== undefined && <span class="faint tokens">{counted(tokens, 'token')}</span>}
        {at !== undefined && (
          <span class="faint">
            <Ago at={at} />
          </span>
        )}
        {seen === true && data.has(toSeen) && (
          <a href={addressOf(toSeen)} title="What the model saw (s)">
            saw
          </a>
        )}
        {(isSaid || kind === 'merge') && data.has(toTrace) && (
          <a href={addressOf(toTrace)} title="Where it came from, and went (t)">
            trace
          </a>
        )}
      </span>
      {commands.length > 0 && (
        <Fold id={`${scope}${seq}.commands`} class="menu" summary={<CommandsMark seq={seq} />}>
          <Commands commands={commands} />
        </Fold>
      )}
    </header>
  );
}

function CommandsMark({ seq }: { readonly seq: number }) {
  return (
    <span title="Commands">
      <span aria-hidden="true">$</span>
      <span class="unseen">Commands at {seq}</span>
    </span>
  );
}

const names: Readonly<Record<TimelineItem['kind'], string>> = {
  message: 'Message',
  anchor: 'Anchor',
  boundary: 'Boundary',
  merge: 'Merge',
  rewind: 'Rewind',
  redaction: 'Redaction',
  result: 'Result',
  event: 'Event',
  forks: 'Forks',
};

const roles = { user: 'User', assistant: 'Assistant', tool: 'Tool' } as const;

/** What an item is, in words. */
export function nameOf({ kind, role, name, child }: TimelineItem): string {
  if (kind === 'message') return role === undefined ? names.message : roles[role];
  if (kind === 'merge') return child?.state === 'discarded' ? 'Discard' : 'Merge';
  if (kind === 'boundary') return name === undefined ? 'Compaction' : `Handoff ${name}`;
  return name === undefined ? names[kind] : `${names[kind]} ${name}`;
}

function About({ item, session, scope }: Pick<ItemOptions, 'item' | 'session'> & { readonly scope: string }) {
  const { seq, child, hides, of, parts } = item;
  const lines: ComponentChildren[] = [];
  if (child !== undefined)
    lines.push(
      <p key="child" class="edge-line">
        <State state={child.state} tone={child.tone} />
        {child.there ? (
          <a
            href={addressOf({
              page: 'session',
              session: child.session,
              ...(child.range !== undefined && { seq: child.range[0] }),
            })}
          >
            {child.session}
            {child.range !== undefined && ` @${child.range[0]}–${child.range[1]}`}
          </a>
        ) : (
          <span>{child.session} (not here)</span>
        )}
      </p>,
    );
  if (hides !== undefined)
    lines.push(
      <Fold
        key="hides"
        id={`${scope}${seq}.hidden`}
        class="hidden-entries"
        summary={
          <span class="summary">
            <span>
              {hides.what}: it hides {counted(hides.entries, 'entry', 'entries')}, @{hides.from}–{hides.to}
            </span>
          </span>
        }
      >
        <HiddenItems
          {...{ session, from: hides.from, to: hides.to }}
          draw={(hidden) => <Item session={session} item={hidden} scope={`${scope}${seq}.`} />}
        />
      </Fold>,
    );
  if (of !== undefined)
    lines.push(
      <p key="of">
        It erased the content of <a href={addressOf({ page: 'session', session, seq: of })}>@{of}</a>.
      </p>,
    );
  return lines.length === 0 && parts.length === 0 ? <p class="faint">Nothing more is recorded.</p> : lines;
}

function Forks({ item: { seq, forks = [], moreForks = false, commands } }: Pick<ItemOptions, 'item'>) {
  return (
    <p class="edge-line forks">
      <span class="soft">
        {forks.length === 1 ? 'Forked here:' : `${grouped(forks.length)} sessions forked here:`}
      </span>
      {forks.map(({ session: child, state, tone }) => (
        <a key={child} href={addressOf({ page: 'session', session: child })}>
          <State state={state} tone={tone} isBrief /> {child}
        </a>
      ))}
      {moreForks &&
        commands.map(({ line }) => <CommandLine key={line} line={line} what={`more forked at ${seq}`} />)}
    </p>
  );
}
