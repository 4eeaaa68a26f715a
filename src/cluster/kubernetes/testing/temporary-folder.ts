import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

/** A folder that is removed when the test ends. */
export class TemporaryFolder {
  readonly path: string;

  constructor(context: TestContext) {
    this.path = mkdtempSync(join(tmpdir(), 'portcullis-client-'));
    context.after(() => rmSync(this.path, { recursive: true, force: true }));
  }

  /** Writes a file and returns its path. */
  write(name: string, content: string, mode = 0o600): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  }
}
