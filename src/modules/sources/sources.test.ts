import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { authoritiesOf, DEFAULT_SOURCES, parseSources } from './sources.ts';
import { TemporaryFolder } from '../testing/temporary-folder.ts';
import { TestAuthority } from '../testing/test-authority.ts';

const authority = await TestAuthority.create();

function indented(text: string): string {
  return text.trim().split('\n').join('\n        ');
}

describe('parseSources', () => {
  it('reads everything that Kubewarden knows, and hosts for tenants', () => {
    const sources = parseSources(
      `
insecure_sources: [registry.test, "LOCALHOST:5000"]
source_authorities:
  "host.test:5443":
    - {type: Path, path: certs/ca.pem}
    - type: Data
      data: |
        ${indented(authority.pem)}
proxies:
  http_proxy: http://user:pw@proxy:3128
  https_proxy: http://proxy:3128
  no_proxy: localhost,.svc
tenant_hosts: [Modules.test, "10.0.0.5:8443"]
`,
      'sources.yml',
      '/etc/portcullis',
    );
    assert.deepEqual(sources.insecureSources, ['registry.test', 'localhost:5000']);
    const [path, data] = sources.sourceAuthorities['host.test:5443'] ?? [];
    assert.deepEqual(path, { type: 'Path', path: '/etc/portcullis/certs/ca.pem' });
    assert.equal(data?.type === 'Data' && data.data.trim(), authority.pem.trim());
    assert.deepEqual(sources.proxies, {
      httpProxy: 'http://user:pw@proxy:3128',
      httpsProxy: 'http://proxy:3128',
      noProxy: 'localhost,.svc',
    });
    assert.deepEqual(sources.tenantHosts, ['modules.test', '10.0.0.5:8443']);
  });

  it('takes an empty file, empty keys, and JSON', () => {
    for (const text of ['', '# nothing\n', '{}', 'insecure_sources:\nsource_authorities:\nproxies:\n']) {
      assert.deepEqual(parseSources(text, 'sources.yml'), DEFAULT_SOURCES);
    }
    assert.deepEqual(parseSources('{"insecure_sources":["a"]}', 's.json').insecureSources, ['a']);
  });

  for (const [text, says] of [
    ['insecure_sources:\n  - ok\n  - https://x/y\n', /^s\.yml:3:5: insecure_sources\.1: expected a host name/],
    ['tenant_hosts: [https://x]\n', /^s\.yml:1:\d+: tenant_hosts\.0: expected a host name/],
    ['insecure_sources: {}\n', /^s\.yml:1:1: .*expected a list, got a mapping/],
    ['# one\ninsecure_source: [x]\n', /^s\.yml:2:1: .*unknown key: expected insecure_sources/],
    ['proxies:\n  http_proxy: http://p\n  ftp_proxy: x\n', /^s\.yml:3:3: proxies\.ftp_proxy: unknown key/],
    ['source_authorities:\n  h:\n  - type: Path\n    data: x\n', /^s\.yml:4:5: .*unknown key: expected type, path/],
    ['source_authorities:\n  h:\n  - type: Url\n', /^s\.yml:3:5: .*expected Path or Data, got "Url"/],
    ['source_authorities:\n  h:\n  - {type: Data, data: nope}\n', /^s\.yml:3:18: .*PEM certificate/],
    ['source_authorities:\n  h:\n  - {type: Path}\n', /^s\.yml:3:5: .*expected a string, got nothing/],
    ['mirrors: {ghcr.io: [ghcr.io/a]}\n', /^s\.yml:1:21: .*expected https:\/\/host/],
    ['mirrors: {ghcr.io: ["https://u:s3cr3t@m"]}\n', /^s\.yml:1:22: mirrors\.ghcr\.io\.0: expected https:(?!.*s3cr3t)/],
    ['mirrors: {ghcr.io: [ftp://m]}\n', /expected https:\/\/host/],
    ['mirrors: {ghcr.io: [file://m]}\n', /expected https:\/\/host/],
    ['mirrors: {a/b: []}\n', /expected a host name/],
    [`mirrors: {h: [${Array.from({ length: 9 }, (_, i) => `"https://m${i}"`).join()}]}\n`, /at most 8 mirrors, got 9/],
    ['insecure_sources: [a\n', /^s\.yml:1:21: not valid YAML/],
    ['a: 1\na: 2\n', /^s\.yml:2:1: not valid YAML: .*duplicate/],
    ['{}\n---\n{}\n', /one document/],
    ['- a\n', /^s\.yml:1:1: expected a mapping, got a list/],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(() => parseSources(text, 's.yml'), { code: 'sources-invalid', message: says });
    });
  }

  it('reads mirrors: registries with a path, and folders relative to the file', () => {
    const text = 'mirrors:\n  ghcr.io: ["https://M.example:443/ghcr/", "file:///l", "file://./l"]\n';
    assert.deepEqual(
      [...parseSources(text, '/etc/s.yml').mirrors],
      [
        [
          'ghcr.io',
          [
            { kind: 'registry', origin: 'https://m.example', prefix: 'ghcr/', shown: 'https://m.example/ghcr' },
            { kind: 'layout', path: '/l', shown: 'file:///l' },
            { kind: 'layout', path: '/etc/l', shown: 'file:///etc/l' },
          ],
        ],
      ],
    );
  });

  it('does not show the password of a proxy', () => {
    assert.throws(
      () => parseSources('proxies: {http_proxy: "socks://u:s3cr3t@p"}', 's.yml'),
      (error: Error) => /expected the URL of a proxy/.test(error.message) && !error.message.includes('s3cr3t'),
    );
  });
});

describe('authoritiesOf', () => {
  it('reads PEM and DER files anew every time', async () => {
    await using folder = await TemporaryFolder.create();
    const path = join(folder.path, 'ca');
    const sources = { ...DEFAULT_SOURCES, sourceAuthorities: { h: [{ type: 'Path', path } as const] } };
    await assert.rejects(authoritiesOf(sources, 'h'), { code: 'file-unreadable', message: /ENOENT/ });
    await writeFile(path, authority.pem);
    assert.deepEqual(await authoritiesOf(sources, 'h'), [authority.pem]);
    await writeFile(path, Buffer.from(authority.pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'));
    assert.equal((await authoritiesOf(sources, 'h'))?.[0]?.trim(), authority.pem.trim());
    await writeFile(path, 'nonsense');
    await assert.rejects(authoritiesOf(sources, 'h'), { code: 'file-unreadable', message: /no certificate|expected/ });
    assert.equal(await authoritiesOf(sources, 'toString'), undefined);
  });
});
