/** The smallest valid module, and a custom section that makes it as large, and as different from others, as a test needs. */
export function testModule(content = ''): Uint8Array {
  const preamble = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
  if (content === '') {
    return Uint8Array.from(preamble);
  }
  const bytes = Buffer.from(content);
  const size = bytes.length + 2;
  const leb = [(size & 0x7f) | 0x80, ((size >>> 7) & 0x7f) | 0x80, (size >>> 14) & 0x7f];
  return new Uint8Array(Buffer.concat([Uint8Array.from([...preamble, 0, ...leb, 1, 0x78]), bytes]));
}
