import { readFileSync, statSync } from 'node:fs';
import { type DeckConfig, parseConfig, SessionError } from '@tapedeck/runtime';
import { parsePolicy, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { ConfigError } from '../errors/kinds.ts';
import type { Home } from '../home.ts';
import { decode } from '../input.ts';
import { homeConfigFile } from './find.ts';
import { camelCase, keys, keysInside, snakeCase } from './keys.ts';
import { inOwnNames, isOtherName, NamesFault, type OtherNamed, otherNamesIn } from './other-names.ts';
import { remoteNameFault } from './remotes.ts';
import { offsetIn } from './rule-place.ts';

/** The allowed fields, by prefix. */
const fields: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  ['', 'settings.', 'prompt.', 'limits.'].map((prefix) => [
    prefix,
    new Set(
      keys.flatMap((key) => (key.startsWith(prefix) ? (key.slice(prefix.length).split('.')[0] ?? '') : [])),
    ),
  ]),
);

/** What `config.yaml` of a home says. */
export interface HomeConfig {
  readonly config: DeckConfig;
  /** The same as plain data, in the spelling of the file. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The settings that the file has under the names of other agents. */
  readonly otherNames: readonly OtherNamed[];
}

/**
 * Reads `config.yaml` of a tape home: the plain-data part of a configuration, which needs no trust. A missing
 * file reads as an empty one.
 * @throws ConfigError with the line of the fault
 */
export async function readHomeConfig(home: Home): Promise<HomeConfig> {
  const path = homeConfigFile(home);
  return await parseHomeConfig(configText(path) ?? '', path);
}

/**
 * Parses the text of a `config.yaml`, and checks it.
 * @throws ConfigError with the line of the fault
 */
export async function parseHomeConfig(text: string, path: string): Promise<HomeConfig> {
  const counter = new LineCounter();
  const refuse = (why: string, offset: number, field?: string): ConfigError => {
    const { line } = counter.linePos(offset);
    return new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': line ${line}: ${why}`, {
      data: { config: path, line, ...(field !== undefined && { field, why }) },
    });
  };
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, stringKeys: true });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) throw refuse(fault.message, fault.pos[0]);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null))
    return { config: {}, data: {}, otherNames: [] };
  if (!isMap(contents))
    throw refuse('it must be a mapping, such as model: PROVIDER/MODEL', contents.range[0]);
  const places = new Map<string, number>();
  const given = fieldsOf(contents, { document, places, refuse });
  const data: Readonly<Record<string, unknown>> = document.toJS();
  const otherNames = namesIn(data, { document, places, refuse });
  const config = inOwnNames(given, otherNames, camelCase);
  try {
    return { config: asProject(await parseConfig(config)), data, otherNames };
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    const { field, why } = error.data as { field: string; why: string };
    // Names of models keep their spelling.
    const name = /^(?:windows|mcpServers|personas)\./.test(field)
      ? field.replace(/^[^.]*|[^.]*$/g, snakeCase)
      : snakeCase(field);
    const other = otherNames.find((one) => one.beside === undefined && one.setting === name);
    if (other !== undefined)
      throw refuse(
        `${other.key}${other.here === other.value ? '' : `, as ${name},`} ${why.replace('Infinity', '.inf')}`,
        placeOf(other.key.split('.').map(camelCase).join('.'), places) ?? 0,
        other.key,
      );
    const fault = await ruleFault(text, document, field);
    if (fault !== undefined) {
      const { line, col: column } = counter.linePos(fault.offset);
      const where = `line ${line}, column ${column}: ${name} is no rule`;
      throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': ${where}: ${fault.why}`, {
        data: { config: path, line, column, field: name, why: `${name} ${why}` },
      });
    }
    throw refuse(
      `${name} ${why.replace('Infinity', '.inf')}`,
      placeOf(field, places) ?? contents.range[0],
      name,
    );
  }
}

/** The settings that a file has under other names. */
function namesIn(data: unknown, { places, refuse }: Reading): readonly OtherNamed[] {
  try {
    return otherNamesIn(data);
  } catch (error) {
    if (!(error instanceof NamesFault)) throw error;
    const place = error.key.split('.').map(camelCase).join('.');
    throw refuse(error.message, placeOf(place, places) ?? 0, error.key);
  }
}

/** What is wrong with a rule of the file, and where in the file; undefined for another fault, or at no such place. */
async function ruleFault(
  file: string,
  document: Document,
  field: string,
): Promise<{ readonly why: string; readonly offset: number } | undefined> {
  const found = /^permissions(?:\.(\d+))?$/.exec(field);
  if (found === null) return undefined;
  const [, at] = found;
  const node = document.getIn(['permissions', ...(at === undefined ? [] : [Number(at)])], true);
  if (!isScalar(node)) return undefined;
  const { parseRules, RuleFault } = await import('@tapedeck/runtime/internal');
  try {
    parseRules(String(node.value));
  } catch (error) {
    if (!(error instanceof RuleFault)) throw error;
    const offset = offsetIn(file, node, error);
    return offset === undefined ? undefined : { why: error.why, offset };
  }
  return undefined;
}

/** The rules of a home follow those of `tape.config.mts`, and do not replace them. */
function asProject({ permissions, ...config }: DeckConfig): DeckConfig {
  return permissions === undefined ? config : { ...config, projectPermissions: permissions };
}

/**
 * The text of the file; undefined when it does not exist.
 * @throws ConfigError when it is not a readable regular file; UsageError when it is not UTF-8
 */
export function configText(path: string): string | undefined {
  try {
    // A pipe or a device would be read without an end.
    if (!statSync(path).isFile())
      throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': it is not a regular file`, {
        data: { config: path },
      });
    return decode(readFileSync(path), `'${path}'`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // A missing home is reported when it is opened.
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'CLI_USAGE' || code === 'CLI_BAD_CONFIG') throw error;
    throw new ConfigError('CLI_BAD_CONFIG', `cannot use '${path}': ${message}`, { data: { config: path } });
  }
}

interface Reading {
  readonly document: Document;
  /** Offset of each field, by its name in the configuration: `limits.maxSteps`. */
  readonly places: Map<string, number>;
  readonly refuse: (why: string, offset: number, field?: string) => ConfigError;
}

/** The keys that a field may mean which stands in the wrong place. */
function meantKeys(name: string): string {
  const meant = keysInside(name);
  return meant.length === 0 ? '' : `; did you mean ${meant.join(' or ')}?`;
}

/** The fields of a mapping, under their camelCase names. */
function fieldsOf(map: YAMLMap, reading: Reading, inside = ''): Readonly<Record<string, unknown>> {
  const { document, places, refuse } = reading;
  const known = fields.get(inside) ?? new Set();
  const found: Record<string, unknown> = {};
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
    if (!known.has(name) && !isOtherName(`${inside}${name}`))
      throw refuse(
        `no such field '${inside}${name}'${meantKeys(name)} (the fields are ${[...known].join(', ')})`,
        offset,
        `${inside}${name}`,
      );
    const field = camelCase(name);
    places.set(`${inside}${field}`, offset);
    try {
      if (field === 'alias') assertAliases(value, reading, offset);
      else if (field === 'remotes') assertRemotes(value, reading, offset);
      else if (field === 'import') {
        const fault = searchedFault(value, offset);
        if (fault !== undefined) throw refuse(fault.why, fault.offset, fault.field);
      } else if (fields.has(`${field}.`) && isMap(value))
        found[field] = fieldsOf(value, reading, `${field}.`);
      else if (field === 'compaction' || field === 'windows')
        found[field] = within(value, reading, { path: field, isNamed: field === 'windows' });
      else if (field === 'mcpServers') found[field] = serversIn(value, reading);
      else if (field === 'personas') found[field] = personasIn(value, reading);
      else if (field === 'routes') {
        placesIn(value, { path: field, places });
        found[field] = plain(value, document);
      } else if (field === 'view') found[field] = rulesIn(plain(value, document));
      else found[field] = plain(value, document);
    } catch (error) {
      if (error instanceof TapeError) throw refuse(error.message, offset, field);
      // A YAML alias without an anchor, or too many of them.
      throw error instanceof ReferenceError ? refuse(error.message, offset) : error;
    }
  }
  return found;
}

/** The command line reads aliases; here they only must have their form. */
function assertAliases(value: unknown, { refuse }: Reading, offset: number): void {
  const isText = (one: unknown) => isScalar(one) && typeof one.value === 'string';
  if (!isMap(value) || !value.items.every((pair) => isText(pair.value)))
    throw refuse('alias must be a mapping of names to texts, such as lg: log --graph', offset, 'alias');
}

/** Pushes and pulls read remotes; here they only must have their form. */
function assertRemotes(value: unknown, { refuse }: Reading, offset: number): void {
  if (!isMap(value)) throw refuse('remotes must be a mapping of names', offset, 'remotes');
  for (const { key, value: remote } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const why =
      remoteNameFault(name) ??
      (isMap(remote) &&
      remote.items.length === 1 &&
      remote.items.every(
        (pair) =>
          isScalar(pair.key) &&
          pair.key.value === 'url' &&
          isScalar(pair.value) &&
          typeof pair.value.value === 'string',
      )
        ? undefined
        : 'it must have the field url, which is a text, and no other');
    if (why !== undefined) throw refuse(`remotes.${name}: ${why}`, offset, `remotes.${name}`);
  }
}

/** A mistake in what a configuration says of imports, and where it stands. */
interface SearchedFault {
  readonly why: string;
  readonly offset: number;
  readonly field: string;
}

/**
 * What is wrong with the form of `import` in a parsed file; undefined for one that imports can read. Pure.
 * @param offset where the field stands
 */
function searchedFault(value: unknown, offset: number): SearchedFault | undefined {
  if (!isMap(value))
    return { why: 'import must be a mapping with roots and exclude', offset, field: 'import' };
  for (const { key, value: list } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const field = `import.${name}`;
    const at = { offset: offsetOf(key) ?? offset, field };
    if (name !== 'roots' && name !== 'exclude')
      return { ...at, why: `no such field '${field}' (the fields are roots, exclude)` };
    if (!isSeq(list)) return { ...at, why: `${field} must be a list of texts` };
    for (const item of list.items) {
      const text = isScalar(item) ? item.value : undefined;
      const here = { ...at, offset: offsetOf(item) ?? at.offset };
      if (typeof text !== 'string') return { ...here, why: `${field} must be a list of texts` };
      // It would be the home itself.
      if (name === 'roots' && text === '')
        return { ...here, why: `${field} has an empty text, which names no directory` };
    }
  }
  return undefined;
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/** Parses a view policy in the syntax of `--policy`; `parseConfig` checks other types of values. */
function rulesIn(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return parsePolicy(value);
}

/** The offset of a field, else of the field that contains it. */
function placeOf(field: string, places: ReadonlyMap<string, number>): number | undefined {
  const place = places.get(field);
  const end = field.lastIndexOf('.');
  return place !== undefined || end === -1 ? place : placeOf(field.slice(0, end), places);
}

/**
 * A value with the fields of its mappings under camelCase names, at any depth. With `isNamed` the outermost
 * keys are names of models and keep their spelling. `parseConfig` checks the values.
 */
function within(
  value: unknown,
  reading: Reading,
  { path, isNamed = false }: { readonly path: string; readonly isNamed?: boolean },
): unknown {
  if (!isMap(value)) return plain(value, reading.document);
  const found: [string, unknown][] = [];
  for (const { key, value: inner } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
    if (!isNamed && name !== snakeCase(name))
      throw reading.refuse(
        `no such field '${snakeCase(path)}.${name}'`,
        offset,
        `${snakeCase(path)}.${name}`,
      );
    const field = isNamed ? name : camelCase(name);
    const place = `${path}.${field}`;
    reading.places.set(place, offset);
    found.push([field, within(inner, reading, { path: place })]);
  }
  return Object.fromEntries(found);
}

/** MCP servers: their names, variables and headers keep their spelling. */
function serversIn(value: unknown, { document, places }: Reading): unknown {
  if (!isMap(value)) return plain(value, document);
  const found: [string, unknown][] = [];
  for (const { key, value: server } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    if (isScalar(key)) places.set(`mcpServers.${name}`, key.range?.[0] ?? 0);
    if (!isMap(server)) found.push([name, plain(server, document)]);
    else {
      const { timeout_ms: timeoutMs, ...fields } = server.toJS(document) as Record<string, unknown>;
      found.push([name, { ...fields, ...(timeoutMs !== undefined && { timeoutMs }) }]);
    }
  }
  return Object.fromEntries(found);
}

/** Personas: their names keep their spelling, and their settings are spelled as those of the home. */
function personasIn(value: unknown, reading: Reading): unknown {
  if (!isMap(value)) return plain(value, reading.document);
  const found: [string, unknown][] = [];
  for (const { key, value: persona } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const path = `personas.${name}`;
    if (isScalar(key)) reading.places.set(path, key.range?.[0] ?? 0);
    placesIn(persona, { path, places: reading.places });
    const settings = isMap(persona) ? persona.get('settings', true) : undefined;
    const fields = plain(persona, reading.document);
    found.push([
      name,
      isMap(settings) && isObject(fields)
        ? { ...fields, settings: fieldsOf(settings, reading, 'settings.') }
        : fields,
    ]);
  }
  return Object.fromEntries(found);
}

/** Notes where the fields in a value are, at any depth. */
function placesIn(
  value: unknown,
  { path, places }: { readonly path: string } & Pick<Reading, 'places'>,
): void {
  if (isSeq(value))
    for (const [i, item] of value.items.entries()) {
      if (isNode(item)) places.set(`${path}.${i}`, item.range?.[0] ?? 0);
      placesIn(item, { path: `${path}.${i}`, places });
    }
  if (isMap(value))
    for (const { key, value: inner } of value.items) {
      if (!isScalar(key)) continue;
      const place = `${path}.${String(key.value)}`;
      places.set(place, key.range?.[0] ?? 0);
      placesIn(inner, { path: place, places });
    }
}

/** The value as plain data, with aliases resolved. */
function plain(value: unknown, document: Document): unknown {
  return isNode(value) ? value.toJS(document) : value;
}
