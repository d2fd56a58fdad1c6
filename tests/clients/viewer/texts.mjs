// Texts that mean harm to a page, a terminal or a reader.

/** Texts that would be markup or script. */
export const MARKUP = [
  '<script>window.harmed = 1</script>', '<img src=x onerror="window.harmed = 1">', '<svg onload="window.harmed=1">', '<iframe src="javascript:parent.harmed=1"></iframe>',
  '</script><script>window.harmed=1</script>', '<!--<script>', ']]><script>window.harmed=1</script>', '<style>*{display:none}</style>', '<base href="http://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=http://evil.example">', '<link rel=stylesheet href=http://evil.example/x.css>', '<a href="javascript:window.harmed=1">x</a>',
  '<form action=http://evil.example><input name=x autofocus onfocus=window.harmed=1>', '<object data=http://evil.example>', '<math><mtext></mtext><mglyph><svg><mtext><style><path id="</style><img src onerror=window.harmed=1>">',
  '![x](http://evil.example/x.png)', '[x](javascript:window.harmed=1)', '<video><source onerror=window.harmed=1>', '<body onload=window.harmed=1>', '"><script>window.harmed=1</script>',
  "';window.harmed=1;//", '${window.harmed=1}', '{{constructor.constructor("window.harmed=1")()}}', '<template><script>window.harmed=1</script></template>', '&lt;script&gt;window.harmed=1&lt;/script&gt;',
  '\u003cscript\u003ewindow.harmed=1\u003c/script\u003e', '<plaintext>', '<xmp><script>window.harmed=1</script>', '<noscript><p title="</noscript><img src=x onerror=window.harmed=1>">', '{"__proto__":{"harmed":1}}',
  '<div id=app></div><div id=bundle>', '<dialog open>', '<button popovertarget=x>', '<input type=hidden accesskey=X onclick=window.harmed=1>',
];
/** Texts that steer terminals and turn the direction of writing. */
const STEERING = [
  '\u001b[2J\u001b[H', '\u001b]0;owned\u0007', '\u001b]8;;http://evil.example\u0007x\u001b]8;;\u0007', '\u001b[31mred', '\u009b31m', '\u001bP+q\u001b\\', '\r overwritten', '\b\b\b\b', '\u0000\u0001\u0002',
  '\u007f', '\u202egnp.exe', '\u2066hidden\u2069', '\u200fright', '\u200eleft', '\u202dabc\u202c', '\u2028line\u2029paragraph', '\ufeffbom', '\u200bzero', '\u0085next', '\u061cletter',
];
/** Texts that are merely long or odd. */
const STRANGE = ['x'.repeat(300000), `${'long '.repeat(40000)}`, '\u0301'.repeat(500), '👩‍💻'.repeat(2000), 'مرحبا بالعالم', '\n'.repeat(5000)];
/** All of them. */
export const TEXTS = [...MARKUP, ...STEERING, ...STRANGE];
