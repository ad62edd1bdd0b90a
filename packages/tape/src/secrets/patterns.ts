import { type Found, loadRules } from './preset.ts';
import { privateKeyLines } from './private-key-lines.ts';
import { blankedBy } from './surroundings.ts';
import { windowChars } from './window.ts';

/** Finds the secrets in a text that one pattern describes. */
interface Rule {
  readonly name: string;
  /** A text without it has no such secret. */
  readonly hint: RegExp;
  readonly find: (text: string) => readonly Found[];
}

/**
 * What the secrets of each rule of the package contain. Rules without a hint are left out: `gcp` reads files, comments in a text turn no rule off, and that for GitHub takes a second
 * for a megabyte of `ghs_1_`: `own` has the patterns of its tokens.
 */
export const hints: Readonly<Record<string, RegExp | undefined>> = {
  '1password': /ops_ey/,
  anthropic: /sk-ant-/,
  aws: /A3T|AKIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ASIA|(?:ACCESS|access|Access)_?(?:KEY|key|Key)/,
  basicauth: /:\/\/[^/@\s]+@/,
  cloudflare: /cf(?:k|ut|at)_/,
  'database-connection-string': /:\/\/[^/@\s]+@/,
  databricks: /dapi/,
  docker: /dckr_pat_/,
  figma: /figd_/,
  'filter-comments': undefined,
  gcp: undefined,
  github: undefined,
  gitlab: /glpat-/,
  grafana: /gl(?:c|sa)_/,
  groq: /gsk_/,
  'hashicorp-vault': /hv[sbr]\./,
  huggingface: /hf_/,
  linear: /lin_api_/,
  notion: /ntn_/,
  npm: /npm_|x-oauth-basic@/,
  openai: /T3BlbkFJ/,
  privatekey: /PRIVATE KEY/,
  sendgrid: /SG\./,
  shopify: /shp(?:pa|ca|at|ss)_/,
  slack: /xox[bpaor]-|xapp-|(?i:hooks\.slack\.com)/,
  stripe: /[sr]k_(?:live|test)_/,
  tailscale: /tskey-/,
  vercel: /vc[piark]_/,
};

/**
 * Tokens that the package has no rule for. Each begins where no letter or digit stands before it, so that a text is read
 * once from each beginning, and repeats with a bound, so that no text is too long for the stack of the engine. Of a
 * pattern with a group the group is the secret.
 */
const own: Readonly<Record<string, RegExp>> = {
  github:
    /(?<![\w-])(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_\w{82,255}|ghs_\d{1,20}_[\w-]{1,1000}\.[\w-]{1,10000}\.[\w-]{1,1000})(?![\w-])/g,
  privatekey:
    /-----BEGIN (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr]){0,8}(?:[A-Za-z-]{1,20}: [^\n\\]{1,100}(?:\s|\\[nr]){1,8}){0,4}([A-Za-z0-9+/=]{32}(?:[A-Za-z0-9+/=\s]|\\[nr]){0,16384})/g,
  jwt: /(?<![\w-])eyJ[\w-]{10,4096}\.eyJ[\w-]{10,16384}\.[\w-]{20,4096}/g,
  authorization: /\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([\w.~+/-]{20,16384}={0,2})/gi,
  npm: /_authToken=([^\s"'$&;\\]{20,4096})/g,
  anthropic: /(?<![\w-])sk-ant-[a-z]{2,10}\d\d-[\w-]{80,200}/g,
  openrouter: /(?<![\w-])sk-or-v1-[0-9a-f]{64}(?![\w-])/g,
  xai: /(?<![\w-])xai-[A-Za-z0-9]{80}(?![\w-])/g,
  google: /(?<![\w-])(?:AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{30,4096})(?![\w-])/g,
  pypi: /(?<![\w-])pypi-AgE[\w-]{50,4096}/g,
  azure: /\bAccountKey=([A-Za-z0-9+/]{86}==)/g,
  age: /\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b/g,
  // What the package leaves: long ones, and passwords with a `/`, whose user is no name of a host and which are no port.
  basicauth:
    /:\/\/((?=[^\s/@]{100})[^\s/:@"'`<>]{0,4096}:[^\s/@"'`<>]{1,4096}(?=@[\w[])|(?:(?![.$[])[^\s/:@"'`<>{}]){1,256}:(?!\d{1,5}\/)[^\s/@"'`<>${}?#]{0,256}\/[^\s@"'`<>${}?#]{0,256}(?=@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?![\w.-])))/g,
  telegram: /(?<![\w-])\d{8,10}:AA[\w-]{33}(?![\w-])/g,
};

const ownHints: Readonly<Record<keyof typeof own, RegExp>> = {
  github: /gh[pousr]_|github_pat_/,
  privatekey: /PRIVATE KEY/,
  jwt: /eyJ/,
  authorization: /(?i:authorization)/,
  npm: /_authToken=/,
  anthropic: /sk-ant-/,
  openrouter: /sk-or-v1-/,
  xai: /xai-/,
  google: /AIza|GOCSPX-|ya29\./,
  pypi: /pypi-AgE/,
  azure: /AccountKey=/,
  age: /AGE-SECRET-KEY-1/,
  basicauth: /:\/\//,
  telegram: /:AA/,
};

/** What a rule finds, and what its secrets contain, in one expression: of most texts nothing else is asked. */
const anyHint = new RegExp(
  [...Object.values(hints), ...Object.values(ownHints)]
    .flatMap((hint) => hint?.source ?? [])
    .filter((source) => !source.startsWith(':\\/\\/'))
    .join('|'),
);

/** A text without what surrounds secrets. Those of OpenAI have their sign in the middle. */
const blanked = blankedBy(new RegExp(`${anyHint.source}|sk-[\\w-]{20}`));

/** The characters of tokens: 1 for each that can be inside of one. */
const ofToken = Uint8Array.from({ length: 128 }, (_, code) =>
  /[\w-]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/** How many such characters follow each other in every secret that no other sign announces. */
const tokenMin = 20;
/** How far before them a hint of the secret can be. */
const hintChars = 64;
/** No hint is longer. */
const hintMax = 16;
/** No secret is shorter. */
const secretMin = 16;
/** What stands before secrets that have no run of characters of tokens. */
const signs = ['PRIVATE KEY', 'AccountKey=', '_authToken='] as const;
/** A user and a password in an address. */
const password = /:\/\/[^\s/:@]{0,4096}:[^\s/@]{0,4096}(?:\/[^\s@]{0,256})?@/;

/** What stands before secrets in any case. */
const telling = /authorization|access_?key/i;

/** Whether a text has what the beginning of a secret has. */
export function isHint(text: string): boolean {
  return anyHint.test(text) || text.includes('://');
}

/** Whether a text has a hint of a secret. Looks at each twentieth character, and around those of long tokens. */
function hasHint(text: string): boolean {
  if (text.length < secretMin) return false;
  for (const sign of signs) if (text.includes(sign)) return true;
  if (text.includes('://') && text.includes('@') && password.test(text)) return true;
  if (telling.test(text)) return true;
  const isOfToken = (at: number): boolean => ofToken[text.charCodeAt(at)] === 1;
  // Up to here there is no hint: what was looked at for one token is not looked at again for the next.
  let looked = 0;
  for (let at = tokenMin - 1; at < text.length; at += tokenMin) {
    if (!isOfToken(at)) continue;
    let from = at;
    while (from > 0 && isOfToken(from - 1)) from -= 1;
    let to = at + 1;
    while (to < text.length && isOfToken(to)) to += 1;
    if (to - from >= tokenMin) {
      if (anyHint.test(text.slice(Math.max(0, from - hintChars, looked - hintMax), to))) return true;
      looked = to;
    }
    at += Math.floor((to - 1 - at) / tokenMin) * tokenMin;
  }
  return false;
}

let loaded: readonly Rule[] | undefined;

/** The rules, made when a text first has a hint of a secret. */
function theRules(): readonly Rule[] {
  if (loaded !== undefined) return loaded;
  const rules: Rule[] = Object.entries(own).map(([name, pattern]) => ({
    name,
    hint: ownHints[name] ?? /(?:)/,
    find: (text) => matches(text, pattern, name),
  }));
  for (const { name, find } of loadRules()) {
    const hint = hints[name];
    if (hint !== undefined) rules.push({ name, hint, find });
  }
  loaded = rules;
  return rules;
}

function matches(text: string, pattern: RegExp, name: string): Found[] {
  const found: Found[] = [];
  for (const match of text.matchAll(pattern)) {
    const secret = match[1] ?? match[0];
    const from = match.index + match[0].lastIndexOf(secret);
    if (secret !== '') found.push({ from, to: from + secret.length, name });
  }
  return found;
}

/** The secrets that patterns of a configuration find: within one line, and within `windowChars` of a longer one. */
function ownMatches(text: string, patterns: readonly (readonly [string, RegExp])[]): Found[] {
  const found: Found[] = [];
  if (patterns.length === 0) return found;
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const lineEnd = end === -1 ? text.length : end;
    for (let at = from; at < lineEnd; at += windowChars / 2) {
      const window = text.slice(at, Math.min(at + windowChars, lineEnd));
      for (const [name, pattern] of patterns)
        for (const one of matches(window, pattern, name))
          found.push({ ...one, from: one.from + at, to: one.to + at });
      if (at + windowChars >= lineEnd) break;
    }
    from = lineEnd + 1;
  }
  return found;
}

/** How much of a text a rule reads at once that cannot read the whole, and how much of it again with the next piece. */
const piece = { chars: 65_536, again: 16_384 } as const;

/** What a rule finds. Some repeat without a bound, and run out of stack on a text of megabytes that suits them. */
function findWith(find: Rule['find'], text: string): readonly Found[] {
  try {
    return find(text);
  } catch (error) {
    if (!(error instanceof RangeError) || text.length <= piece.chars) throw error;
  }
  const found: Found[] = [];
  for (let at = 0; at < text.length; at += piece.chars - piece.again)
    for (const one of find(text.slice(at, at + piece.chars)))
      found.push({ ...one, from: one.from + at, to: one.to + at });
  return found;
}

const nothing: readonly Found[] = [];

/**
 * Finds the secrets of a text, in order and without overlaps. Its time grows with the length of the text, whatever the
 * text is. `added`: further patterns by name.
 */
export function findSecrets(
  text: string,
  added: readonly (readonly [name: string, pattern: RegExp])[] = [],
): readonly Found[] {
  const isHinted = hasHint(text);
  if (!isHinted && added.length === 0) return nothing;
  const found = ownMatches(text, added);
  if (isHinted) {
    const texts = [text, ...blanked(text)];
    for (const { hint, find } of theRules())
      if (hint.test(text))
        for (const one of texts) for (const place of findWith(find, one)) found.push(place);
    const [, plain = text] = texts;
    if (plain.includes('PRIVATE KEY'))
      for (const place of privateKeyLines(plain)) found.push({ ...place, name: 'privatekey' });
  }
  if (found.length < 2) return found;
  found.sort((a, b) => a.from - b.from || b.to - a.to);
  const apart: Found[] = [];
  for (const one of found) {
    const last = apart.at(-1);
    if (last === undefined || one.from >= last.to) apart.push(one);
    else if (one.to > last.to) apart[apart.length - 1] = { ...last, to: one.to };
  }
  return apart;
}
