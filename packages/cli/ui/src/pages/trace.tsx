import type { TraceRow } from '../../../src/page/data.ts';
import type { Go } from '../app.tsx';
import { useAsked } from '../data/data.tsx';
import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { useKeys } from '../parts/keys.ts';
import { NotHere } from '../parts/loading.tsx';
import { Positions } from '../reading/places.tsx';
import { addressOf } from '../route.ts';

const directions = [
  ['from', 'Where it came from', 'It was said here: it was merged from nowhere else.'],
  ['into', 'Where it went', 'It was not merged anywhere.'],
  ['inherited', 'Who inherited it', undefined],
] as const;

/** Follows an entry back to where it was said, and on to where it was merged. */
export function Trace({
  session,
  seq,
  go,
}: {
  readonly session: string;
  readonly seq: number;
  readonly go: Go;
}) {
  const place = `${session}@${seq}`;
  const { value, error, again } = useAsked(async (data) => await data.trace({ session, seq }), place);
  useKeys([
    { keys: ['u'], what: 'go back to the entry', act: () => go({ page: 'session', session, seq }) },
    { keys: ['s'], what: 'see what the model saw', act: () => go({ page: 'seen', session, seq }) },
  ]);
  const here = value?.find(({ direction }) => direction === 'here');
  return (
    <div class="sheet">
      <Heading title="Trace">
        <span class="soft">
          of <a href={addressOf({ page: 'session', session, seq })}>{place}</a>
        </span>
        <div class="tools">{here?.command !== undefined && <CommandLine line={here.command} />}</div>
      </Heading>
      <NotHere {...{ value, error, again }} />
      {here !== undefined && <p class="trace-here">{here.text}</p>}
      {value !== undefined &&
        directions.map(([direction, title, empty]) => (
          <Direction
            key={direction}
            title={title}
            empty={empty}
            rows={value.filter((row) => row.direction === direction)}
          />
        ))}
    </div>
  );
}

function Direction({
  title,
  empty,
  rows,
}: {
  readonly title: string;
  readonly empty: string | undefined;
  readonly rows: readonly TraceRow[];
}) {
  if (rows.length === 0 && empty === undefined) return null;
  return (
    <section class="trace">
      <h2>{title}</h2>
      {rows.length === 0 && <p class="soft">{empty}</p>}
      <ol>
        {rows.map((row) => (
          <li
            key={`${row.depth} ${row.seq} ${row.session} ${row.text}`}
            style={{ paddingLeft: `${Math.min(row.depth, 12) * 18}px` }}
          >
            <span class="unseen">Level {row.depth}: </span>
            {row.session === undefined ? (
              <span>{row.text}</span>
            ) : (
              <a
                href={addressOf({
                  page: 'session',
                  session: row.session,
                  ...(row.seq !== undefined && { seq: row.seq }),
                })}
              >
                {row.text}
              </a>
            )}
            {row.session !== undefined && row.range !== undefined && (
              <span class="soft">
                {' '}
                in the merged range <Positions session={row.session} from={row.range[0]} to={row.range[1]} />
              </span>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
