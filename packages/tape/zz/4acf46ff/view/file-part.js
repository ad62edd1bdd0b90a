import {               isBlobRef } from '../entry/blob.js';
                                              
import { isObject } from '../entry/json.js';
                                            

/** A file of a message or of a tool's output, in any form that the AI SDK has for it. */
                
                             
                                    
                                                                                                       
                                    
                        
                          
                                                    
 

/** Fits a user's file to the target; one that the target does not accept becomes text. */
export function fitUserFile(part      , dialect         )       {
  const file = fileOf(part, part.data ?? part.image);
  if (!takes(file, dialect, dialect.files)) return quoteFile(file);
  if (part.type === 'file' && part.mediaType === file.mediaType) return part;
  const { image, ...rest } = part;
  return { ...rest, type: 'file', mediaType: file.mediaType, data: part.data ?? image };
}

/** Fits a file in a tool's output to the target; one that the target does not accept becomes text. */
export function fitResultFile(item      , dialect         )       {
  const file = fileOf(item, item.data ?? item.url ?? item.providerReference ?? item.fileId);
  if (takes(file, dialect, dialect.resultFiles)) return item;
  // A chat API's result is one text, without a place for stored bytes.
  return quoteFile(dialect.chat && typeof file.bytes === 'object' ? { ...file, bytes: '' } : file);
}

/** Renders a file that a model made as text. */
export function quoteMadeFile(part      )       {
  return quoteFile(fileOf(part, part.data ?? part.image));
}

/** Whether a file is an address: no provider takes one as a file that its model made. */
export function isLinked(part      )          {
  return fileOf(part, part.data ?? part.image).url !== undefined;
}

function takes({ bytes, url, plain, kept, mediaType }      , dialect         , types        )          {
  if (bytes !== undefined) return types.test(mediaType);
  if (url !== undefined) return types.test(mediaType) && dialect.urls.test(url);
  if (plain !== undefined) return dialect.plainFiles.test(mediaType) && plain.trim() !== '';
  return kept !== undefined && !dialect.textOnly && dialect.optionNames.some((name) => name in kept);
}

function quoteFile({ mediaType, name = 'no name', bytes, plain }      )       {
  if (plain !== undefined && plain.trim() !== '') return { type: 'text', text: plain };
  const size = typeof bytes === 'object' ? bytes.size : (bytes?.length ?? 0);
  if (mediaType.startsWith('text/') && bytes !== undefined && size > 0)
    return { type: 'text', text: textOf(bytes) };
  return { type: 'text', text: `[A file that is not shown here: ${name}, ${mediaType}]` };
}

/** Text of a file; stored bytes stay a reference, which is restored as text. */
function textOf(bytes                  )          {
  if (typeof bytes === 'string') return Buffer.from(bytes, 'base64').toString('utf8');
  return { ...bytes, as: 'text', preview: '' };
}

function fileOf(part      , data         )       {
  const name = typeof part.filename === 'string' && part.filename !== '' ? part.filename : undefined;
  // A tool can give its output items any type.
  const fallback =
    typeof part.type === 'string' && part.type.startsWith('image') ? 'image' : 'application/octet-stream';
  const mediaType = typeof part.mediaType === 'string' ? part.mediaType : fallback;
  return { mediaType, name, ...contentOf(data) };
}

function contentOf(data         )                {
  if (isBlobRef(data)) return { bytes: data            };
  if (typeof data === 'string') return addressOf(data) ?? { bytes: data };
  if (!isObject(data)) return {};
  switch (data.type) {
    case 'data':
      if (isBlobRef(data.data)) return { bytes: data.data            };
      return typeof data.data === 'string' ? { bytes: data.data } : {};
    case 'url':
      return typeof data.url === 'string' ? (addressOf(data.url) ?? {}) : {};
    case 'text':
      return typeof data.text === 'string' ? { plain: data.text } : {};
    case 'reference':
      return isObject(data.reference) ? { kept: data.reference } : {};
    default:
      return { kept: data };
  }
}

/** Returns what a URL stands for; `undefined` for other text, such as base64. */
function addressOf(text        )                            {
  if (!URL.canParse(text)) return undefined;
  const inline = /^data:([^;,]*)(?:;[^,]*)?,(.*)$/is.exec(text);
  if (inline === null) return { url: text };
  const [, mediaType = '', content = ''] = inline;
  return { bytes: content, ...(mediaType !== '' && { mediaType }) };
}
