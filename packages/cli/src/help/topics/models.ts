import type { Topic } from '../page.ts';

export const models: Topic = {
  name: 'models',
  summary: 'Which model a run calls, and what each needs',
  page: {
    sections: [
      {
        blocks: [
          '`run`, `chat`, `send`, `approve`, `delegate` and `recover` take the first model that is given by:',
          {
            terms: [
              ['`--model SPEC`', 'This command line; the session keeps it'],
              ['the session', 'The model of its last message, or that of `tape new --model`'],
              ['`$TAPE_MODEL`', 'The environment'],
              ['`model`', '`tape.config.mts`, else `config.yaml` of the home: see `tape help config`'],
            ],
          },
          'An imported session has no model until its first run here: which model wrote its answers is a record. ' +
            'A model whose run failed before any answer is not kept. Errors of a model name where it comes from, and ' +
            'have that in `data.modelFrom`.',
        ],
      },
      {
        title: 'Specs',
        blocks: [
          {
            terms: [
              ['`openai-compatible/NAME`', 'Needs `OPENAI_BASE_URL` and `OPENAI_API_KEY`'],
              [
                '`anthropic/NAME`',
                'Needs `ANTHROPIC_API_KEY`, and the package `@ai-sdk/anthropic` beside the project; without that, the AI Gateway',
              ],
              ['`openai/NAME`', 'Needs `OPENAI_API_KEY`, and `@ai-sdk/openai` in the same way'],
              ['`google/NAME`', 'Needs `GOOGLE_GENERATIVE_AI_API_KEY`, and `@ai-sdk/google` in the same way'],
              ['`PROVIDER/NAME`', 'Any other provider: the AI Gateway, which needs `AI_GATEWAY_API_KEY`'],
              ['`script:FILE`', 'Scripted answers, offline'],
            ],
          },
          '`--temperature` and `--effort` stay with the session in the same way, one by one. `--effort` is the ' +
            'reasoning effort in the terms of the AI SDK.',
        ],
      },
      {
        title: 'Scripts',
        blocks: [
          'A script is a JSON array of answers:',
          {
            lines: [
              '[{"text"?, "toolCalls"?: [{"name", "input", "id"?}], "delayMs"?,',
              '  "usage"?: {"input"?, "output"?}, "error"?,',
              '  "when"?: {"session"?: GLOB, "text"?: PART_OF_THE_LAST_USER_MESSAGE}}]',
            ],
          },
          'A call receives the first answer whose `when` matches, after as many matching answers as the session has ' +
            'received from scripts. The tape records the received answers, so this holds across processes.',
        ],
      },
    ],
  },
};
