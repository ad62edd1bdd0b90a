import { wordsOf } from '../command-line/line.ts';
import { commonOptions } from '../options/common.ts';
import type { Option, Options } from '../options/declare.ts';
import type { Verb } from '../verbs/verb.ts';
import type { Page, Section, Term } from './page.ts';

/** The help of a verb, from what it declares. That of a verb that is named like a topic has the topic, too. */
export function verbPage(verb: Verb, topic?: Page): Page {
  const own = optionTerms(verb.options ?? {});
  const words = wordsOf(verb).map(({ name }): Term => {
    const argument = verb.arguments?.[name];
    if (typeof argument !== 'object') return [name, argument ?? ''];
    return [name, `${argument.describe}: ${argument.choices.join(', ')}`];
  });
  return {
    sections: [
      { blocks: [{ lines: [`tape ${verb.command}${own.length === 0 ? '' : ' [options]'}`] }] },
      {
        blocks: [
          `${verb.summary}.${(verb.aliases ?? []).map((alias) => ` Also: tape ${alias}.`).join('')}`,
          ...(verb.detail === undefined ? [] : [verb.detail]),
        ],
      },
      ...terms('Arguments', words),
      ...terms('Options', own),
      {
        title: 'Examples',
        blocks: [{ lines: verb.examples.flatMap(([command, does]) => [`# ${does}`, command]) }],
      },
      ...(topic?.sections ?? []),
      commonSectionBeside(verb.options ?? {}),
    ],
  };
}

function terms(title: string, of: readonly Term[]): readonly Section[] {
  return of.length === 0 ? [] : [{ title, blocks: [{ terms: of }] }];
}

/** The options that each verb has. */
export const commonSection: Section = commonSectionBeside({});

/** Those without the ones in whose place a verb has others of the same name. */
function commonSectionBeside(own: Options): Section {
  const others = Object.entries(commonOptions).filter(([name]) => !Object.hasOwn(own, name));
  return {
    title: 'Options of every verb',
    blocks: [{ terms: [...optionTerms(Object.fromEntries(others)), ['-h, --help', 'Show help']] }],
  };
}

function optionTerms(options: Options): readonly Term[] {
  return Object.entries(options)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([name, option]) => [optionTerm(name, option), optionText(option)]);
}

/** An option as it is written: `-n N`, `-f, --follow`, `--[no-]color`, `--order completion|spawn`. */
function optionTerm(name: string, { type, alias, choices, negatable, takes }: Option): string {
  const negation = negatable === true && type === 'boolean' ? '[no-]' : '';
  const written = name.length === 1 ? `-${name}` : `--${negation}${name}`;
  const value =
    type === 'boolean' ? '' : ` ${choices?.join('|') ?? takes ?? (type === 'number' ? 'N' : 'TEXT')}`;
  return `${alias === undefined ? '' : `-${alias}, `}${written}${value}`;
}

function optionText({ describe = '', type, required, default: value }: Option): string {
  const more = [
    ...(required === true ? ['required'] : []),
    ...(type === 'list' ? ['may be repeated'] : []),
    ...(value === undefined ? [] : [`default: ${String(value)}`]),
  ];
  return more.length === 0 ? describe : `${describe} (${more.join('; ')})`;
}
