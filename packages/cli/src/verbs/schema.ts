import { nearNames } from '@tapedeck/tape/store';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { defineVerb, type Verb } from './verb.ts';

export const schema: Verb = defineVerb({
  command: 'schema [verb]',
  group: 'Share',
  paged: 'data',
  summary: 'Print the JSON Schema of the output of verbs',
  detail:
    'With VERB, prints the schema of its output: of the document, or of each line with --jsonl. A verb with several forms lists them ' +
    'under anyOf. Without VERB, prints a document whose properties are the schemas of all verbs. $defs has the shared shapes, ' +
    'and Error, which a failing verb prints on stderr. The schemas describe this version and allow no other fields; a later ' +
    'version may add some. Needs no tape home.',
  examples: [
    ['tape schema log', 'Print the schema of tape log'],
    ['tape schema > tape.schema.json', 'Print the schemas of all verbs'],
  ],
  arguments: { verb: 'Name of a verb (default: all)' },
  run: async ({ verb }, { io, options }) => {
    const { contract, jsonSchema } = await import('../contract/index.ts');
    if (verb !== undefined && !Object.hasOwn(contract, verb))
      throw new NotFoundError(`cannot print the schema of '${verb}': no such verb`, {
        verb,
        near: nearNames(verb, Object.keys(contract)),
      });
    const indent = options.json === true || options.jsonl === true ? undefined : 2;
    await io.out(`${JSON.stringify(jsonSchema(verb), undefined, indent)}\n`);
    return exit.done;
  },
});
