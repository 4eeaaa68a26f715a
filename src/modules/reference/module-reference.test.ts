import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import * as fc from 'fast-check';

import { ModuleError } from './errors.ts';
import { isDigest } from './digest.ts';
import { parseReference, REFERENCE_LIMIT } from './module-reference.ts';

const HEX = 'ab'.repeat(32);

describe('parseReference', () => {
  it('reads absolute file URLs, escapes included', () => {
    const reference = parseReference('file:///policies/a%20b%23.wasm');
    assert.deepEqual(reference, {
      kind: 'file',
      path: '/policies/a b#.wasm',
      shown: 'file:///policies/a%20b%23.wasm',
      key: 'file:///policies/a%20b%23.wasm',
    });
  });

  it('resolves relative file URLs against the folder of the caller', () => {
    const pathOf = (text: string): unknown => {
      const reference = parseReference(text, { baseDir: '/etc/my policies' });
      return reference.kind === 'file' && reference.path;
    };
    assert.equal(pathOf('file://./x.wasm'), '/etc/my policies/x.wasm');
    assert.equal(pathOf('file://../x.wasm'), '/etc/x.wasm');
    assert.equal(pathOf('file:///x.wasm'), '/x.wasm');
  });

  it('takes the digest off the end, in lower case', () => {
    const file = parseReference(`file:///x@y.wasm@SHA256:${HEX.toUpperCase()}`);
    assert.deepEqual([file.digest, file.shown], [`sha256:${HEX}`, 'file:///x@y.wasm']);
    const http = parseReference(`https://example.com/x.wasm?a=b@sha256:${HEX}`);
    assert.deepEqual(
      [http.digest, http.kind === 'http' && http.url.href],
      [`sha256:${HEX}`, 'https://example.com/x.wasm?a=b'],
    );
  });

  for (const [text, shown, key] of [
    ['registry://ghcr.io/a/b:v1', 'registry://ghcr.io/a/b:v1', 'registry://ghcr.io/a/b:v1'],
    ['oci://ghcr.io/a/b:v1', 'registry://ghcr.io/a/b:v1', 'registry://ghcr.io/a/b:v1'],
    ['ghcr.io/a/b', 'registry://ghcr.io/a/b:latest', 'registry://ghcr.io/a/b:latest'],
    ['localhost:5000/x:v1', 'registry://localhost:5000/x:v1', 'registry://localhost:5000/x:v1'],
    ['registry://0x7f.1:443/x:v1', 'registry://127.0.0.1/x:v1', 'registry://127.0.0.1/x:v1'],
    [`registry://ghcr.io/a/b:v1@sha256:${HEX}`, 'registry://ghcr.io/a/b:v1', `registry://ghcr.io/a/b@sha256:${HEX}`],
    [`ghcr.io/a@sha256:${HEX}`, `registry://ghcr.io/a@sha256:${HEX}`, `registry://ghcr.io/a@sha256:${HEX}`],
  ] as const) {
    it(`reads ${text}`, () => {
      const reference = parseReference(text);
      assert.deepEqual([reference.kind, reference.shown, reference.key], ['registry', shown, key]);
      assert.equal(reference.digest, undefined, 'the digest of a module is not that of its manifest');
      const manifest = reference.kind === 'registry' ? reference.manifest : undefined;
      assert.equal(manifest, text.includes('@') ? `sha256:${HEX}` : undefined);
    });
  }

  it('keeps credentials and query strings to itself', () => {
    const reference = parseReference('https://joe:pa%73s@Example.com:443/x.wasm?token=secret#part');
    assert.equal(reference.shown, 'https://example.com/x.wasm?…');
    assert.equal(reference.key, 'https://example.com/x.wasm?token=secret');
    assert.equal(reference.kind === 'http' && reference.url.username, 'joe');
  });

  for (const [text, code, says] of [
    ['', 'reference-invalid', /has no scheme/],
    ['./policy.wasm', 'reference-invalid', /file:\/\/\.\/policy\.wasm/],
    ['ftp://example.com/x.wasm', 'reference-invalid', /ftp:\/\//],
    ['registry://example.com', 'reference-invalid', /no repository/],
    ['registry://example.com/', 'reference-invalid', /repository is malformed/],
    ['registry:///x', 'reference-invalid', /host is malformed/],
    ['registry://u:pw@example.com/x', 'reference-invalid', /remove them/],
    ['registry://example.com/X:v1', 'reference-invalid', /lower-case letters/],
    ['registry://example.com/a//b', 'reference-invalid', /repository is malformed/],
    ['registry://example.com/../x', 'reference-invalid', /repository is malformed/],
    ['registry://example.com/x:', 'reference-invalid', /tag is malformed/],
    [`registry://example.com/x:${'v'.repeat(129)}`, 'reference-invalid', /tag is malformed/],
    ['registry://example.com/x:v1?a=b', 'reference-invalid', /tag is malformed/],
    ['registry://example.com:99999/x', 'reference-invalid', /host is malformed/],
    [`registry://example.com/${'x'.repeat(256)}`, 'reference-invalid', /at most 255/],
    ['policies/x.wasm', 'reference-invalid', /has no scheme/],
    ['../policies/x.wasm', 'reference-invalid', /has no scheme/],
    ['file://./x.wasm', 'reference-invalid', /relative/],
    ['file://host/x.wasm', 'reference-invalid', /another machine/],
    ['file:///x.wasm?a', 'reference-invalid', /%3F/],
    ['file:///x%2Fy.wasm', 'reference-invalid', /not a valid file URL/],
    ['file:///x%00y.wasm', 'reference-invalid', /not a valid file URL/],
    ['https://', 'reference-invalid', /not a valid URL/],
    ['https://a%zz:b@example.com/', 'reference-invalid', /%25/],
    [`https://example.com/x.wasm@sha256:${HEX}0`, 'reference-invalid', /64 hexadecimal/],
    [`https://example.com/x.wasm@sha512:${HEX}`, 'reference-invalid', /sha512/],
    [`https://example.com/${'x'.repeat(REFERENCE_LIMIT)}`, 'reference-invalid', /too long/],
  ] as const) {
    it(`refuses ${text.slice(0, 60) || 'nothing'}`, () => {
      assert.throws(() => parseReference(text), { name: 'ModuleError', code, message: says });
    });
  }

  it('never fails otherwise, and never shows a secret', () => {
    const secret = 's3cr3t';
    const parts = fc.array(
      fc.oneof(
        fc.constantFrom(
          'file://',
          'http://',
          'https://',
          'registry://',
          '@',
          ':',
          '/',
          '?',
          '#',
          '%',
          '[',
          `@sha256:${HEX}`,
        ),
        fc.constantFrom(`//u:${secret}@`, `?t=${secret}`),
        fc.string({ maxLength: 6 }),
        fc.constantFrom('\0', '\u2028', 'é', '\ud800', '\\'),
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(fc.constantFrom('http:', 'https:', 'registry:', 'oci:', ''), parts, (scheme, rest) => {
        // Secrets stand only where URLs have them: in the authority and in the query.
        const text = `${scheme}//u:${secret}@host/p?q=${secret}${rest.filter((part) => !part.includes(secret)).join('')}`;
        try {
          const reference = parseReference(text, { baseDir: '/base' });
          assert.ok(!reference.shown.includes(secret));
          assert.ok(reference.digest === undefined || isDigest(reference.digest));
        } catch (error) {
          assert.ok(error instanceof ModuleError, String(error));
          assert.ok(!error.message.includes(secret), error.message);
        }
      }),
    );
    fc.assert(
      fc.property(parts, (rest) => {
        try {
          parseReference(rest.join(''), { baseDir: '/base' });
        } catch (error) {
          assert.ok(error instanceof ModuleError, String(error));
        }
      }),
    );
  });

  it('reads a registry reference as it was put together, and nothing that is almost one', () => {
    const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
    const repository = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join('/'));
    const host = fc
      .tuple(word, fc.constantFrom('', ':5000', ':65535'))
      .map(([name, port]) => `a${name}.example${port}`);
    const tag = fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,20}$/), { nil: undefined });
    const manifest = fc.option(fc.stringMatching(/^[0-9a-f]{64}$/), { nil: undefined });
    const space = fc.constantFrom('', ' ', '\n', '\t ');
    const scheme = fc.constantFrom('', 'registry://', 'oci://', 'Registry://');
    fc.assert(
      fc.property(scheme, host, repository, tag, manifest, space, (scheme_, host_, repository_, tag_, hex, space_) => {
        const version = `${tag_ === undefined ? '' : `:${tag_}`}${hex === undefined ? '' : `@SHA256:${hex}`}`;
        const reference = parseReference(`${space_}${scheme_}${host_}/${repository_}${version}${space_}`);
        assert.ok(reference.kind === 'registry');
        assert.deepEqual(
          [reference.host, reference.repository, reference.tag, reference.manifest],
          [host_, repository_, tag_ ?? (hex === undefined ? 'latest' : undefined), hex && `sha256:${hex}`],
        );
        const again = parseReference(reference.shown);
        assert.ok(again.kind === 'registry' && again.repository === repository_ && again.host === host_);
      }),
    );
    // One character that belongs nowhere.
    const wrong = fc.constantFrom('\\', '?', '#', '%', '"', '<', ' ', '\0', 'é', '*', '@', ',', '//', '..');
    fc.assert(
      fc.property(host, repository, wrong, fc.nat(), (host_, repository_, character, position) => {
        const at = position % (repository_.length + 1);
        const text = `registry://${host_}/${repository_.slice(0, at)}${character}${repository_.slice(at)}x:v1`;
        assert.throws(() => parseReference(text), { code: 'reference-invalid' }, text);
      }),
    );
  });
});
