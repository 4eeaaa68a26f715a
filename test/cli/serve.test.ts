// `portcullis serve` as a process: what it does with signals.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { ensureLocalCertificates } from '../../src/server/index.ts';
import { guest, requires, TestFolder } from '../server/harness.ts';
import { COMMAND, ENVIRONMENT, ROOT } from './command.ts';

type Line = Readonly<Record<string, unknown>>;

/** A server in a process of its own, with what it logs. */
class ServeProcess implements AsyncDisposable {
  readonly #child;
  readonly #lines: Line[] = [];
  #told = 0;
  #waiting: (() => void) | undefined;

  constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, [COMMAND, 'serve', '--log-fmt', 'json', ...args], {
      cwd: ROOT,
      env: ENVIRONMENT,
    });
    let rest = '';
    const read = (text: string): void => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      this.#lines.push(...lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line));
      this.#waiting?.();
    };
    this.#child.stdout.setEncoding('utf8').on('data', read);
    this.#child.stderr.setEncoding('utf8').on('data', read);
    this.#child.once('exit', () => this.#waiting?.());
  }

  /** The next line with a message, behind those that were asked for before. */
  async says(message: string): Promise<Line> {
    for (;;) {
      const index = this.#lines.findIndex(({ msg }, at) => at >= this.#told && msg === message);
      const line = this.#lines[index];
      if (line !== undefined) {
        this.#told = index + 1;
        return line;
      }
      assert.equal(this.#child.exitCode, null, `it ended before it said "${message}": ${JSON.stringify(this.#lines)}`);
      await new Promise<void>((resolve) => (this.#waiting = resolve));
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await once(this.#child, 'exit');
    }
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended();
  }
}

/** The serial number of the certificate that a server shows. */
async function serialNumber(url: string): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { serialNumber: serial } = socket.getPeerCertificate();
  socket.destroy();
  return serial;
}

describe('portcullis serve', () => {
  it('at SIGHUP reads policies and certificates again and retries what failed; at SIGTERM stops with 0', async () => {
    await using folder = await TestFolder.create();
    const module = join(folder.path, 'later.wasm');
    await folder.write({ good: requires('app'), later: { module: `file://${module}` } });
    const { certFile, keyFile } = folder.certificates;
    const data = ['--policies', folder.policiesFile, '--policies-download-dir', folder.dataDir];
    const ports = ['--addr', '127.0.0.1', '--port', '0', '--readiness-probe-port', '0'];
    const tls = ['--cert-file', certFile, '--key-file', keyFile];
    await using server = new ServeProcess([...data, ...ports, ...tls]);
    const ready = await server.says('policy server ready');
    assert.deepEqual([ready['policies'], ready['active'], ready['failed']], [2, 1, 1]);
    const url = String(ready['admission']);
    const before = await serialNumber(url);

    await cp(new URL(guest('accept')), module);
    const other = await ensureLocalCertificates(join(folder.path, 'other'));
    await cp(other.certFile, certFile);
    await cp(other.keyFile, keyFile);
    server.signal('SIGHUP');
    const reloaded = await server.says('reloaded');
    assert.deepEqual([reloaded['policies'], reloaded['failed'], reloaded['error']], [2, 0, undefined]);
    assert.notEqual(await serialNumber(url), before);

    await folder.write('good: [');
    server.signal('SIGHUP');
    assert.match(String((await server.says('reloaded'))['error']), /policies\.yml:\d+:\d+/);

    server.signal('SIGTERM');
    await server.says('stopped');
    assert.equal(await server.ended(), 0);
  });
});
