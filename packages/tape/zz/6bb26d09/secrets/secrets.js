/**
 * Secrets and their replacement. Those that the process knows: `secrets.ts` collects them from an environment, `forms.ts`
 * are the texts as which one occurs, `mask.ts` replaces them in texts, bytes and values, `masked-text.ts` in a text that
 * arrives in pieces, `mask-error.ts` in errors. Those that have the form of one: `patterns.ts` finds them in a text, with
 * the rules of the package that `preset.ts` loads, `redactor.ts` replaces them in texts, bytes and values. `signed.ts`
 * says what becomes of a signed part with one. Imports nothing but Node.js and that package.
 */
import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';

/** A text that is neither written nor printed, and the name that takes its place: `[secret NAME]`. */
                         
                                                                                  
                        
                         
 

/** Names of variables that hold a secret by convention. */
const secretName = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
/** A shorter value says little, and occurs in any text. */
const secretMin = 8;

/** Why a value cannot be replaced wherever it occurs; undefined when it can. Pure. */
export function secretFault(value        )                     {
  if (value.length < secretMin) return `must have at least ${secretMin} characters`;
  return /^\d+$/.test(value) ? 'must not be a number, which occurs as such' : undefined;
}

/** What a name of a secret must match. */
export const secretNamePattern         = /^[\w.-]{1,100}$/;

/**
 * Returns the secrets of an environment: the values of variables such as `OPENAI_API_KEY`, and the passwords of
 * addresses, as in `postgres://user:password@host`. The path of a file is no secret.
 */
export function secretsIn(env                                              )                    {
  return Object.entries(env).flatMap(([variable, given = '']) => {
    // Space around it, such as the end of the line of a file, is not sent, nor repeated by a server.
    const value = given.trim();
    const found = value.includes('://') ? [...passwordsIn(value), ...tokensIn(value)] : [];
    if (secretName.test(variable) && secretFault(value) === undefined && !isFile(value)) found.push(value);
    return found.map((secret) => ({ name: variable.replace(/[^\w.-]/g, '_'), value: secret }));
  });
}

/** Returns secrets of an object of values by name. */
export function secretsOf(values                                              )                    {
  return Object.entries(values ?? {}).map(([name, value]) => ({ name, value }));
}

function isFile(value        )          {
  return isAbsolute(value) && existsSync(value);
}

/** The passwords of the addresses in a value, as they stand there and without percent signs. */
function passwordsIn(value        )           {
  return [...value.matchAll(/:\/\/([^\s:/@]*):([^\s/]+)@/g)].flatMap(([, user = '', password = '']) => {
    // A password such as `postgres` is a word of any text; with its user it is not.
    const isWord = secretFault(password) !== undefined || password === user;
    const whole = `${user}:${password}@`;
    const given = isWord ? (whole.length < secretMin ? [] : [whole]) : [password];
    return [...new Set([...given, ...given.map(decoded)])];
  });
}

/** The tokens that stand in place of a user, as in `https://TOKEN@host` and `https://TOKEN:x-oauth-basic@host`. */
function tokensIn(value        )           {
  return [...value.matchAll(/:\/\/([^\s:/@]{16,})(?::x-oauth-basic)?@/g)].map(([, token = '']) => token);
}

function decoded(text        )         {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
