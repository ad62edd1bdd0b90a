import {            formsOf } from './forms.js';
                                           

/** Replaces secrets by their names. What has none is returned as it is. */
                       
                                          
                                                    
                                                               
                                     
                                                                                          
                                  
                           
 

/** What takes the place of a secret. */
export function placeholder({ name }        )         {
  return `[secret ${name}]`;
}

/** Whether a secret was replaced in a text. */
export function isMasked(text        )          {
  return /\[secret [\w.-]+\]/.test(text);
}

const masks = new WeakMap                                     ();

/** The mask of these secrets; undefined without any. */
export function maskFor(secrets                   )                   {
  if (!masks.has(secrets)) masks.set(secrets, secrets.length === 0 ? undefined : makeMask(secrets));
  return masks.get(secrets);
}

function makeMask(secrets                   )       {
  const forms = formsOf(secrets);
  const names = new Map(forms.map(({ text, secret }) => [text, placeholder(secret)]));
  const patternOf = (texts                   ) =>
    new RegExp(texts.map((one) => RegExp.escape(one)).join('|'), 'g');
  const pattern = patternOf(forms.map(({ text }) => text));
  const shortest = forms.at(-1)?.text.length ?? 0;
  // One character for each byte: a secret in any text of UTF-8 is found so.
  const byteNames = new Map([...names].map(([form, name]) => [Buffer.from(form).toString('latin1'), name]));
  const byteForms = [...byteNames.keys()].map((form) => Buffer.from(form, 'latin1'));
  const bytePattern = patternOf([...byteNames.keys()]);

  const bytes = (given            )             => {
    const buffer = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    if (!byteForms.some((form) => buffer.includes(form))) return given;
    const text = buffer.toString('latin1').replace(bytePattern, (found) => byteNames.get(found) ?? '');
    return new Uint8Array(Buffer.from(text, 'latin1'));
  };

  const text = (given        )         => {
    if (given.length < shortest) return given;
    const found = forms.find((form) => given.includes(form.text));
    if (found === undefined) return given;
    const whole = found.isBase64 ? maskedBase64(given, bytes) : undefined;
    return whole ?? given.replace(pattern, (form) => names.get(form) ?? '');
  };
  return {
    text,
    bytes,
    forms,
    pattern,
    value: (value) => maskedValue(value, { text, bytes })                ,
  };
}

/** A text that is base64 as a whole, such as that of a file, stays so. Undefined for any other. */
function maskedBase64(text        , bytes               )                     {
  const [, head = '', data] = /^(data:[^,]*;base64,)?([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (data === undefined) return undefined;
  const content = Buffer.from(data, 'base64');
  const masked = bytes(content);
  return masked === content ? undefined : head + Buffer.from(masked).toString('base64');
}

/** A copy of a value with its secrets replaced; the value itself if it has none. Follows its JSON form. */
function maskedValue(root         , { text, bytes }                              )          {
  const known = new Map                 ();
  const visit = (value         )          => {
    if (typeof value === 'string') return text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Uint8Array) return bytes(value);
    if (value instanceof ArrayBuffer) {
      const whole = new Uint8Array(value);
      const masked = bytes(whole);
      return masked === whole ? value : masked;
    }
    if (known.has(value)) return known.get(value);
    // A value that contains itself is returned as it is, and refused where it is encoded.
    known.set(value, value);
    const masked = Array.isArray(value) ? list(value) : fields(value);
    known.set(value, masked);
    return masked;
  };
  const list = (values                    )          => {
    const masked = values.map(visit);
    return masked.some((value, i) => value !== values[i]) ? masked : values;
  };
  const fields = (object        )          => {
    const json = asJson(object);
    if (json !== object) {
      const masked = visit(json);
      return masked === json ? object : masked;
    }
    const before = Object.entries(object);
    const after = before.map(([name, value]) => [text(name), visit(value)]         );
    const isSame = after.every(([name, value], i) => name === before[i]?.[0] && value === before[i]?.[1]);
    return isSame ? object : Object.fromEntries(after);
  };
  try {
    return visit(root);
  } catch {
    // A field that throws when it is read, or a value nested too deep: no entry can hold it.
    return root;
  }
}

/** What JSON makes of an object that says so itself, as a date or an address does. */
function asJson(object        )          {
  return 'toJSON' in object && typeof object.toJSON === 'function' ? object.toJSON() : object;
}
