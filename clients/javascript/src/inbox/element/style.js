// How the inbox component looks. Colors and sizes are CSS variables, so that a page sets them on the element.

export const STYLE = `
:host {
  --_accent: var(--godwit-inbox-accent, #1f5fbf);
  --_on-accent: var(--godwit-inbox-on-accent, #fff);
  --_background: var(--godwit-inbox-background, #fff);
  --_text: var(--godwit-inbox-text, #1b1f24);
  --_muted: var(--godwit-inbox-muted, #57606a);
  --_border: var(--godwit-inbox-border, #d0d7de);
  --_unread: var(--godwit-inbox-unread, #eef4fd);
  display: inline-block; position: relative; font: var(--godwit-inbox-font, 14px/1.45 system-ui, sans-serif); color: var(--_text);
}
@media (prefers-color-scheme: dark) {
  :host {
    --_accent: var(--godwit-inbox-accent, #7fb0ff);
    --_on-accent: var(--godwit-inbox-on-accent, #0d1117);
    --_background: var(--godwit-inbox-background, #161b22);
    --_text: var(--godwit-inbox-text, #e6edf3);
    --_muted: var(--godwit-inbox-muted, #9da7b3);
    --_border: var(--godwit-inbox-border, #3d444d);
    --_unread: var(--godwit-inbox-unread, #1c2a40);
  }
}
[hidden] { display: none !important; }
button, a, input { font: inherit; color: inherit; }
button { background: none; border: 1px solid transparent; border-radius: 6px; cursor: pointer; padding: 4px 8px; }
button:hover, .row a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 1px; }
.bell { position: relative; padding: 6px; line-height: 0; }
.bell svg { width: 24px; height: 24px; }
.count {
  position: absolute; top: -2px; inset-inline-end: -4px; min-width: 10px; padding: 0 4px; border-radius: 9px; line-height: 18px;
  font-size: 11px; font-weight: 600; text-align: center; background: var(--_accent); color: var(--_on-accent);
}
.panel {
  position: absolute; inset-inline-end: 0; z-index: 1000; display: flex; flex-direction: column; box-sizing: border-box;
  width: min(var(--godwit-inbox-width, 380px), 96vw); max-height: var(--godwit-inbox-height, 70vh); overflow: hidden;
  background: var(--_background); border: 1px solid var(--_border); border-radius: var(--godwit-inbox-radius, 10px);
  box-shadow: 0 8px 30px rgb(0 0 0 / 20%);
}
.panel.start { inset-inline: 0 auto; }
.panel.wide { position: fixed; inset-inline: 2vw; width: 96vw; }
.head, .lists { display: flex; flex-wrap: wrap; align-items: center; gap: 2px; padding: 6px 10px; border-bottom: 1px solid var(--_border); }
h2 { flex: 1; margin: 0; font-size: 15px; }
.lists button[aria-pressed="true"] { border-color: var(--_accent); color: var(--_accent); font-weight: 600; }
.scroll { overflow-y: auto; overscroll-behavior: contain; }
ul { list-style: none; margin: 0; padding: 0; }
.row { display: grid; grid-template-columns: 1fr auto; gap: 2px 8px; padding: 10px; border-bottom: 1px solid var(--_border); }
.row.unread { background: var(--_unread); }
.row .main { text-align: start; padding: 0; border: 0; display: block; text-decoration: none; overflow-wrap: anywhere; }
.row .title { font-weight: 400; }
.row.unread .title { font-weight: 650; }
.row .body { margin: 2px 0 0; color: var(--_muted); overflow-wrap: anywhere; white-space: pre-line; }
.row time { color: var(--_muted); font-size: 12px; }
.row .more { grid-column: 1 / -1; display: flex; flex-wrap: wrap; gap: 6px; align-items: center; }
.row .action { border: 1px solid var(--_accent); color: var(--_accent); border-radius: 6px; padding: 3px 10px; text-decoration: none; }
.row .quiet { color: var(--_muted); font-size: 12px; padding: 2px 4px; }
.row .quiet:first-of-type { margin-inline-start: auto; }
.note { margin: 0; padding: 12px; color: var(--_muted); text-align: center; }
.older { display: block; margin: 8px auto; border-color: var(--_border); }
.wishes { padding: 10px; }
.wishes table { width: 100%; border-collapse: collapse; }
.wishes th { text-align: start; font-weight: 600; padding: 4px; }
.wishes td { text-align: center; }
.wishes thead th { text-align: center; }
`;
