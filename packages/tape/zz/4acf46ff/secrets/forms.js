                                           

/** A text as which a secret occurs. */
                       
                        
                          
                                                                                           
                             
 

/**
 * The texts as which a secret occurs: as it is, in a JSON text, in an address, and in base64, as headers have it. The
 * longest first. Pure.
 */
export function formsOf(secrets                   )                  {
  const forms = new Map              ();
  for (const secret of secrets) {
    const plain = [secret.value, JSON.stringify(secret.value).slice(1, -1), inAddress(secret.value)];
    for (const text of plain) addTo(forms, { text, secret, isBase64: false });
    for (const text of inBase64(secret.value)) addTo(forms, { text, secret, isBase64: true });
  }
  return [...forms.values()].sort((a, b) => b.text.length - a.text.length);
}

/** Of two secrets with one value the first gives the name. */
function addTo(forms                   , form      )       {
  if (!forms.has(form.text)) forms.set(form.text, form);
}

function inAddress(value        )         {
  return encodeURIComponent(value.toWellFormed());
}

/**
 * The characters that the base64 of any bytes with this text has, wherever the text begins in a group of three bytes.
 * The characters at its ends, which depend on the bytes around it, are left out.
 */
function inBase64(value        )                    {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const text = bytes
      .toString('base64')
      .slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
    return [text, text.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
