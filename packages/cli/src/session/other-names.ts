import { homeConfigFile } from '../config/find.ts';
import type { OtherNamed } from '../config/other-names.ts';
import type { Context } from '../context.ts';
import { ConfigError } from '../errors/kinds.ts';
import { jsonText, safe } from '../escape.ts';
import { exit } from '../exit.ts';

/** A setting of `config.yaml` as another agent has it, and what it is here. */
interface Row {
  readonly key: string;
  readonly value: unknown;
  readonly setting: string;
  readonly here: unknown;
  readonly implies?: OtherNamed['implies'];
  readonly used: boolean;
  readonly why?: string;
}

/** Prints the settings of `config.yaml` that have the names of other agents, and those that they share with ours. */
export async function printOtherNames(context: Context): Promise<number> {
  const { io, options } = context;
  const rows = await rowsOf(context);
  if (options.json === true) await io.out(`${jsonText(rows)}\n`);
  else if (options.jsonl === true) for (const row of rows) await io.out(`${jsonText(row)}\n`);
  else if (options.quiet === true) for (const { key } of rows) await io.out(`${safe(key)}\n`);
  else if (rows.length > 0) for (const row of rows) await io.out(`${rowText(row)}\n`);
  else context.status(`No setting of ${homeConfigFile(context.home)} has the name of another agent`);
  return exit.done;
}

/** Says the same as status, in the text for a person. A file that cannot be used is reported where it is used. */
export async function sayOtherNames(context: Context): Promise<void> {
  const { json, jsonl } = context.options;
  if (json === true || jsonl === true) return;
  try {
    for (const row of await rowsOf(context)) context.status(rowText(row));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
  }
}

async function rowsOf({ home }: Pick<Context, 'home'>): Promise<readonly Row[]> {
  const { readHomeConfig } = await import('../config/home.ts');
  const { sameNamesIn } = await import('../config/other-names.ts');
  const { data, otherNames } = await readHomeConfig(home);
  const others = otherNames.map(({ key, value, setting, here, implies, beside }): Row => {
    const row = { key, value, setting, here };
    if (beside !== undefined) return { ...row, used: false, why: `${beside} is set, too` };
    return { ...row, ...(Object.keys(implies).length > 0 && { implies }), used: true };
  });
  const same = sameNamesIn(data).map(
    ({ key, value }): Row => ({ key, value, setting: key, here: value, used: true }),
  );
  return [...others, ...same];
}

function rowText({ key, value, setting, here, implies = {}, used, why }: Row): string {
  const pair = (name: string, of: unknown) => `${name}: ${typeof of === 'string' ? of : JSON.stringify(of)}`;
  const given = pair(key, value);
  if (!used) return safe(`${given} is not used: ${why}`);
  if (setting === key) return safe(`${given} has the same name here`);
  const also = Object.entries(implies).map(([name, of]) => pair(name, of));
  return safe([`${given} is ${pair(setting, here)} here`, ...also].join(', with '));
}
