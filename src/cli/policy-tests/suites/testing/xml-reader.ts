import assert from 'node:assert/strict';

/** A reader of XML, as strict as this document needs: names and attributes, and text without entities of its own. */
export function parseXml(
  text: string,
): readonly { readonly name: string; readonly attributes: Record<string, string>; readonly text: string }[] {
  const elements: { name: string; attributes: Record<string, string>; text: string }[] = [];
  const open: { name: string; attributes: Record<string, string>; text: string }[] = [];
  const plain = (escaped: string): string => {
    assert.doesNotMatch(escaped, /[<>]|&(?!(?:amp|lt|gt|quot|#\d+);)/);
    return escaped.replaceAll(/&(amp|lt|gt|quot|#\d+);/g, (_, name: string) =>
      name.startsWith('#')
        ? String.fromCodePoint(Number(name.slice(1)))
        : ({ amp: '&', lt: '<', gt: '>', quot: '"' }[name] ?? ''),
    );
  };
  const tokens = text
    .replace(/^<\?xml[^?]*\?>\n/, '')
    .matchAll(/<(\/?)([a-z-]+)((?: [a-z]+="[^"<]*")*)(\/?)>|([^<]+)/g);
  let end = 0;
  for (const match of tokens) {
    assert.equal(match.index, end, 'something is neither an element nor text');
    end = match.index + match[0].length;
    const [, closing, name = '', attributes = '', single, content] = match;
    if (content !== undefined) {
      const current = open.at(-1);
      if (current !== undefined) {
        current.text += plain(content);
      }
    } else if (closing === '/') {
      assert.equal(open.pop()?.name, name);
    } else {
      const pairs = [...attributes.matchAll(/ ([a-z]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [
        key,
        plain(value),
      ]);
      const element = { name, attributes: Object.fromEntries(pairs) as Record<string, string>, text: '' };
      elements.push(element);
      if (single === '') {
        open.push(element);
      }
    }
  }
  assert.equal(open.length, 0);
  return elements;
}
