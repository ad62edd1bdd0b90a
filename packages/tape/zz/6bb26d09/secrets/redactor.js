import { isUtf8 } from 'node:buffer';
import { findSecrets } from './patterns.js';
import { secretNamePattern } from './secrets.js';
import { unsigned } from './signed.js';

/** Where secrets are looked for that have the form of one, and further forms. */
                                
                                                                                                              
                                  
                                                                                                      
                                                       
 

/** `false`: nowhere. `true`: `{ in: 'results' }`. `'all'`: `{ in: 'all' }`. */
                                                     

/** A value without its secrets, and how many were replaced. */
                       
                    
                         
 

/** Replaces what has the form of a secret by `[secret KIND]`. What has none is returned as it is. */
                           
                                 
                                                                           
                                          
                                                                                                                   
                                               
 

/** What is wrong with a setting, and where in it; undefined for one that can be used. Pure. */
export function redactFault(
  given         ,
)                                                                         {
  if (typeof given === 'boolean' || given === 'all') return undefined;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { path: [], why: 'must be true, false, all, or an object of in and patterns' };
  const { in: where, patterns = {}, ...others } = given                                     ;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return { path: [unknown], why: 'does not exist' };
  if (where !== undefined && where !== 'results' && where !== 'all')
    return { path: ['in'], why: 'must be results or all' };
  if (typeof patterns !== 'object' || patterns === null || Array.isArray(patterns))
    return { path: ['patterns'], why: 'must be an object of regular expressions' };
  for (const [name, source] of Object.entries(patterns)) {
    const why = secretNamePattern.test(name)
      ? patternFault(source)
      : 'must have a name of letters, digits, _, . and -';
    if (why !== undefined) return { path: ['patterns', name], why };
  }
  return undefined;
}

/** Repetition of what repeats takes time that grows exponentially with the text. */
const nested = /\((?:[^()\\]|\\.)*(?:[*+]|\{\d+,\d*\})(?:[^()\\]|\\.)*\)(?:[*+]|\{\d+,)/;

function patternFault(source         )                     {
  if (typeof source !== 'string') return 'must be a text';
  try {
    if (new RegExp(source).test('')) return 'must not match an empty text';
  } catch {
    return 'must be a regular expression';
  }
  return nested.test(source) ? 'must not repeat a group that repeats something' : undefined;
}

const made = new Map                              ();

/** The redactor of a setting; undefined for `false`. */
export function redactorFor(given         = true)                       {
  const key = JSON.stringify(given);
  if (!made.has(key)) made.set(key, makeRedactor(given));
  return made.get(key);
}

function makeRedactor(given        )                       {
  if (given === false) return undefined;
  const options                = given === true ? {} : given === 'all' ? { in: 'all' } : given;
  const patterns = Object.entries(options.patterns ?? {}).map(
    ([name, source]) => [name, new RegExp(source, 'g')]         ,
  );
  return {
    in: options.in ?? 'results',
    patterns,
    text: (text) => redactedText(text, patterns).value,
    whole: (value) => redactedValue(value, patterns),
  };
}

                                     

function redactedText(text        , patterns          )                   {
  const found = findSecrets(text, patterns);
  if (found.length === 0) return { value: text, count: 0 };
  const pieces           = [];
  let from = 0;
  for (const one of found) {
    pieces.push(text.slice(from, one.from), `[secret ${one.name}]`);
    from = one.to;
  }
  return { value: pieces.join('') + text.slice(from), count: found.length };
}

/** Names of fields whose value is a secret because of the name: the name is read with the value. */
const tellingName = /access_?key|authorization|account_?key/i;
/** A deeper value is refused where it is encoded. */
const depthMax = 200;

/** A copy of a value with its secrets replaced; the value itself if it has none. Follows its JSON form. */
function redactedValue   (root   , patterns          )              {
  let count = 0;
  const textOf = (text        )         => {
    const redacted = redactedText(text, patterns);
    count += redacted.count;
    return redacted.value;
  };
  const bytesOf = (bytes            )             => {
    if (!isUtf8(bytes)) return bytes;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
    const redacted = textOf(text);
    return redacted === text ? bytes : new Uint8Array(Buffer.from(redacted));
  };
  const visit = (value         , depth        )          => {
    if (typeof value === 'string') return textOf(value);
    if (typeof value !== 'object' || value === null || depth > depthMax) return value;
    if (value instanceof Uint8Array) return bytesOf(value);
    if (value instanceof ArrayBuffer) {
      const whole = new Uint8Array(value);
      const redacted = bytesOf(whole);
      return redacted === whole ? value : redacted;
    }
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      const json          = value.toJSON();
      const redacted = visit(json, depth + 1);
      return redacted === json ? value : redacted;
    }
    if (!Array.isArray(value)) return fieldsOf(value, depth);
    const list = value.flatMap((one) => {
      const part = unsigned(one, (content) => redactedValue(content, patterns).count > 0);
      if (part !== undefined || one === undefined) return [visit(part, depth + 1)];
      count += 1;
      return [];
    });
    return list.length === value.length && list.every((one, i) => one === value[i]) ? value : list;
  };
  const fieldsOf = (object        , depth        )          => {
    let isSame = true;
    const names = new Set        ();
    const fields = Object.entries(object);
    for (const pair of fields) {
      const [name, field] = pair;
      pair[0] = nameOf(textOf(name), names);
      pair[1] = fieldOf(object, name, field, depth);
      isSame &&= name === pair[0] && field === pair[1];
    }
    return isSame ? object : Object.fromEntries(fields);
  };
  const fieldOf = (object        , name        , field         , depth        )          => {
    if (typeof field !== 'string') return visit(field, depth + 1);
    if (tellingName.test(name)) {
      const whole = `${name}=${field}`;
      const redacted = redactedText(whole, patterns);
      // The name itself is no secret here: `textOf` has seen it.
      if (redacted.count > 0 && redacted.value.startsWith(`${name}=`)) {
        count += redacted.count;
        return redacted.value.slice(name.length + 1);
      }
    }
    if (name !== 'data' && name !== 'image') return textOf(field);
    return base64Text(object, field, textOf) ?? textOf(field);
  };
  const value = visit(root, 0)     ;
  return { value, count };
}

/** Two names that are secrets of one kind stay two names. */
function nameOf(name        , taken             )         {
  let own = name;
  for (let i = 2; taken.has(own); i += 1) own = `${name} ${i}`;
  taken.add(own);
  return own;
}

/** A file of text in a part, which is base64, stays so. Undefined for any other value. */
function base64Text(part        , data        , textOf                          )                     {
  if (!('mediaType' in part) || data.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(data))
    return undefined;
  const bytes = Buffer.from(data, 'base64');
  if (!isUtf8(bytes)) return data;
  const text = bytes.toString();
  const redacted = textOf(text);
  return redacted === text ? data : Buffer.from(redacted).toString('base64');
}
