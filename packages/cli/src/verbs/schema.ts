import { nearNames } from '@tapedeck/tape';
import { NotFoundError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { defineVerb, type Verb } from './verb.ts';

export const schema: Verb = defineVerb({
  command: 'schema [verb]',
  group: 'Other',
  summary: 'Describe the JSON that verbs print, as JSON Schema',
  detail:
    'With VERB, the schema of the output of that verb: one document, or each line with --jsonl. A verb with several forms has them under ' +
    'anyOf. Without VERB, a document whose properties are the schemas of all verbs, by name. In both, $defs has the shared ' +
    'shapes, and Error, which any verb prints on stderr when it fails. The schemas are those of this version, and allow no other ' +
    'field; a later version may add some. Needs no tape home.',
  examples: [
    ['tape schema log', 'What tape log prints'],
    ['tape schema > tape.schema.json', 'What all verbs print'],
  ],
  options: (y) => y.positional('verb', { type: 'string', describe: 'Name of a verb (default: all)' }),
  run: async ({ verb }, { io, options }) => {
    const { contract, jsonSchema } = await import('../contract/index.ts');
    if (verb !== undefined && !Object.hasOwn(contract, verb))
      throw new NotFoundError(`cannot print the schema of '${verb}': there is no such verb`, {
        verb,
        near: nearNames(verb, Object.keys(contract)),
      });
    const indent = options.json === true || options.jsonl === true ? undefined : 2;
    await io.out(`${JSON.stringify(jsonSchema(verb), undefined, indent)}\n`);
    return exit.done;
  },
});
