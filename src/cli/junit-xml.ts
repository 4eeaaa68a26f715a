// Elements of JUnit XML: https://github.com/testmoapp/junitxml

/** An element; the children are XML. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  children: readonly string[],
): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeAttribute(String(value))}"`);
  const open = `<${name}${written.join('')}`;
  return children.length === 0 ? `${open}/>` : `${open}>${children.join('')}</${name}>`;
}

/**
 * Replaces characters that XML 1.0 does not allow, https://www.w3.org/TR/xml/#charsets, and those that it allows but that control
 * a terminal or the direction of text: reports are read on both.
 */
export function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\u{7F}-\u{9F}\p{Bidi_Control}]/gu, '\uFFFD')
    .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('\r', '&#13;');
}

function escapeAttribute(text: string): string {
  return escapeText(text).replaceAll('"', '&quot;').replaceAll('\t', '&#9;').replaceAll('\n', '&#10;');
}
