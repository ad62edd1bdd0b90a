/**
 * What the tests of this repository read of the command line, as `@tapedeck/cli/internal`: both parsers, what verbs and
 * options declare, the pages of the help, what the page of `tape ui` shows, which names are like others, what is erased of
 * a forgotten source, and what becomes of Ctrl-C while a server is silent. No promise covers it. Imports `help` and what
 * lies below it.
 */
export { onBlocked } from './blocked.ts';
export { readLine } from './command-line/full.ts';
export { type Line, wordsOf } from './command-line/line.ts';
export { withLiteralWords } from './command-line/literal-words.ts';
export { meanings } from './command-line/meanings.ts';
export { plainLine } from './command-line/plain.ts';
export { verbFirst } from './command-line/verb-in.ts';
export { splitWords } from './config/aliases.ts';
export { keys as configKeys } from './config/keys.ts';
export { holdingsOf, inTurn } from './forget/holdings.ts';
export type { Block, Section, Topic } from './help/page.ts';
export { topics } from './help/topics/index.ts';
export { commonSection, verbPage } from './help/verb-page.ts';
export { commonOptions } from './options/common.ts';
export type { Option } from './options/declare.ts';
export type { LineageRow, Page, PageData, PageEvent, SessionRow, TimelineItem, Tone } from './page/data.ts';
export type { Embedded } from './page/embedded.ts';
export { type LivePage, type LiveSource, pageOf, wholeJson } from './page/page.ts';
export { similarSessions } from './similar.ts';
export { allVerbs, verbNamed } from './verbs/index.ts';
export { groups, nameOf, type Verb } from './verbs/verb.ts';
