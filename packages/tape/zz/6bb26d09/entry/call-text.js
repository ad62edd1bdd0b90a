import { isObject,                            } from './json.js';

/** A tool call for people, on one line: `grep(pattern: round, path: src)`, `read(total.ts)`, `restart()`. Pure. */
export function callText({ toolName, input = null }            )         {
  return `${String(toolName)}(${argumentsText(input)})`;
}

/** The arguments of a call on one line: the value of a lone one, else each with its name. Pure. */
export function argumentsText(input      )         {
  if (!isObject(input)) return input === null ? '' : valueText(input);
  const fields = Object.entries(input);
  const [only] = fields;
  if (fields.length === 1 && only !== undefined) return valueText(only[1]);
  return fields.map(([name, value]) => `${name}: ${valueText(value)}`).join(', ');
}

function valueText(value      )         {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
