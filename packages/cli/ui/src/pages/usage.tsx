import { useState } from 'preact/hooks';
import type { UsageRow } from '../../../src/page/data.ts';
import { useAsked, useSource } from '../data/data.tsx';
import { Toggle } from '../parts/choices.tsx';
import { CommandLine } from '../parts/command.tsx';
import { Heading } from '../parts/heading.tsx';
import { NotHere } from '../parts/loading.tsx';
import { counted, grouped, short } from '../parts/numbers.tsx';
import { Wide } from '../parts/wide.tsx';
import { Plot } from '../plot/plot.tsx';
import { addressOf } from '../route.ts';

/** Tokens of the home, or of a session, alone or with all below it: over time, by model and by session. */
export function Usage({ session }: { readonly session?: string }) {
  const [tree, setTree] = useState(true);
  const isTree = session !== undefined && tree;
  const { value, error, again } = useAsked(
    async (data) => await data.usage(session === undefined ? {} : { session, ...(tree && { tree }) }),
    `${session ?? ''} ${isTree}`,
  );
  return (
    <div class="sheet">
      <Heading title={session === undefined ? 'Usage' : `Usage of ${session}`}>
        <div class="tools">
          {session !== undefined && (
            <Toggle label="With all below it" isOn={tree} turn={() => setTree(!tree)} />
          )}
          {session !== undefined && <a href={addressOf({ page: 'session', session })}>Timeline</a>}
          {session !== undefined && <a href={addressOf({ page: 'usage' })}>All sessions</a>}
          {value !== undefined && <CommandLine line={value.command} />}
        </div>
      </Heading>
      <NotHere {...{ value, error, again }} />
      {value !== undefined && (
        <>
          <Total row={value.total} />
          {value.days.length > 0 && (
            <section aria-labelledby="by-day">
              <h2 id="by-day">By day</h2>
              <Plot days={value.days} />
              <details>
                <summary>The same as a table</summary>
                <Figures name="Day (UTC)" rows={value.days.toReversed()} />
              </details>
            </section>
          )}
          <section aria-labelledby="by-model">
            <h2 id="by-model">By model</h2>
            <Figures name="Model" rows={value.models} />
          </section>
          <section aria-labelledby="by-session">
            <h2 id="by-session">By session</h2>
            <Figures name="Session" rows={value.sessions} isSession />
          </section>
        </>
      )}
    </div>
  );
}

const parts = [
  ['input', 'Input'],
  ['output', 'Output'],
  ['reasoning', 'Reasoning'],
  ['cacheRead', 'From cache'],
  ['cacheWrite', 'To cache'],
] as const;

function Total({ row }: { readonly row: UsageRow }) {
  return (
    <dl class="totals">
      <div>
        <dt>Tokens</dt>
        <dd title={grouped(row.total)}>{short(row.total)}</dd>
      </div>
      <div>
        <dt>Model calls</dt>
        <dd>{short(row.steps)}</dd>
      </div>
      {parts.map(([key, name]) => (
        <div key={key}>
          <dt>{name}</dt>
          <dd title={grouped(row[key])}>{short(row[key])}</dd>
        </div>
      ))}
      {row.cost !== undefined && (
        <div>
          <dt>Cost</dt>
          <dd>{row.cost.toFixed(2)}</dd>
        </div>
      )}
    </dl>
  );
}

function Figures({
  name,
  rows,
  isSession = false,
}: {
  readonly name: string;
  readonly rows: readonly UsageRow[];
  readonly isSession?: boolean;
}) {
  const { data } = useSource();
  if (rows.length === 0) return <p class="soft">No model call is recorded.</p>;
  const most = Math.max(1, ...rows.map(({ total }) => total));
  return (
    <Wide label={`Tokens by ${name.toLowerCase()}`}>
      <table class="figures usage">
        <thead>
          <tr>
            <th>{name}</th>
            <th class="number">Calls</th>
            {parts.map(([key, title]) => (
              <th key={key} class="number">
                {title}
              </th>
            ))}
            <th class="number">All</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <th scope="row">
                {isSession && data.has({ page: 'usage', session: row.key }) ? (
                  <a href={addressOf({ page: 'usage', session: row.key })}>{row.key}</a>
                ) : (
                  row.key || <span class="faint">not recorded</span>
                )}
                <span class="share" style={{ width: `${(100 * row.total) / most}%` }} />
              </th>
              <td class="number">{grouped(row.steps)}</td>
              {parts.map(([key]) => (
                <td key={key} class="number" title={grouped(row[key])}>
                  {row[key] === 0 ? <span class="faint">–</span> : short(row[key])}
                </td>
              ))}
              <td class="number">
                <strong title={counted(row.total, 'token')}>{short(row.total)}</strong>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
