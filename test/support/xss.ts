/** What each of them calls when it runs. */
const act = 'window.tapedeckRan=1;alert(1)';

/** Forty texts that run, or load something, where a page takes a text for markup, for an address or for a script. */
export const vectors: readonly string[] = [
  `<script>${act}</script>`,
  '<script src=https://evil.example/x.js></script>',
  `<img src=x onerror="${act}">`,
  '<img src="https://evil.example/pixel.png">',
  `<svg onload="${act}"></svg>`,
  `<svg><script>${act}</script></svg>`,
  `<svg><a xlink:href="javascript:${act}"><text y="20">press</text></a></svg>`,
  `<svg><animate onbegin="${act}" attributeName="x" dur="1s"></animate></svg>`,
  '<svg><image href="https://evil.example/i.svg"></image></svg>',
  '<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg></svg>#x"></use></svg>',
  `<math><mtext><table><mglyph><style><img src=x onerror="${act}"></style></mglyph></table></mtext></math>`,
  `<body onload="${act}">`,
  `<iframe src="javascript:${act}"></iframe>`,
  `<iframe srcdoc="<script>parent.tapedeckRan=1</script>"></iframe>`,
  '<object data="https://evil.example/o"></object>',
  '<embed src="https://evil.example/e">',
  '<link rel=stylesheet href="https://evil.example/s.css">',
  '<style>@import "https://evil.example/i.css"; body{background:url(https://evil.example/b.png)}</style>',
  '<base href="https://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
  `<form action="javascript:${act}"><button>press</button></form>`,
  `<button formaction="javascript:${act}">press</button>`,
  `<details open ontoggle="${act}"><summary>x</summary></details>`,
  `<input autofocus onfocus="${act}">`,
  `<video><source onerror="${act}"></video>`,
  `<a href="javascript:${act}">press</a>`,
  `[press](javascript:${act})`,
  `[press](JaVaScRiPt:${encodeURIComponent(act)})`,
  `[press](&#106;avascript:${act})`,
  `[press](java\tscript:${act})`,
  '[press](data:text/html,<script>opener.tapedeckRan=1</script>)',
  `[press](vbscript:msgbox(1))`,
  `[press][1]\n\n[1]: javascript:${act}`,
  `<javascript:${act}>`,
  '![picture](https://evil.example/markdown.png)',
  `![picture](javascript:${act})`,
  `[![picture](https://evil.example/in-a-link.png)](javascript:${act})`,
  `\`\`\`"><script>${act}</script>\nx\n\`\`\``,
  `"><script>${act}</script>`,
  `'-(${act})-'</script></template></textarea></title><script>${act}</script><!--`,
];

/** What in the page is active that its own code did not make: empty where a text stayed a text. */
export const activeInPage = `(() => {
  const found = [];
  if (window.tapedeckRan !== undefined) found.push('a script ran');
  const allowed = /^(#\\/|\\.?\\/?page\\.(js|css)$|https?:\\/\\/|mailto:|data:(image\\/(svg\\+xml|png)[;,]|,))/;
  for (const element of document.querySelectorAll('*')) {
    const { localName } = element;
    if (/^(iframe|object|embed|base|frame|applet|video|audio|source|img|image|use|animate|math|template|foreignobject)$/i.test(localName))
      found.push('element ' + element.outerHTML.slice(0, 200));
    if (localName === 'form' && !element.matches('main form.picker:not([action])')) found.push('form');
    if (element.closest('main') !== null && /^(script|style|link|meta|title|body)$/i.test(localName))
      found.push('element ' + element.outerHTML.slice(0, 200));
    if (localName === 'meta' && element.httpEquiv === 'refresh') found.push('refresh');
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name) || name === 'srcdoc') found.push('handler ' + name + '=' + value);
      if (/^(href|src|xlink:href|action|formaction|data|poster|background|ping|srcset)$/i.test(name) && !allowed.test(value))
        found.push('address ' + name + '=' + value);
    }
  }
  return found;
})()`;
