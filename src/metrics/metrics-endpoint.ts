// Answers `GET /metrics`.
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Registry } from 'prom-client';
import { metricsPage, type MetricsOf } from './metrics-page.ts';

/** Pages that are written at the same time: two scrapers, each with a second try. */
const MAX_PAGES = 4;
/** `Retry-After` of further requests. Seconds. */
const RETRY_AFTER_SECONDS = '5';

/** Writes the page of registries as fast as the client reads it, so that no page is in memory whole. */
export class MetricsEndpoint {
  readonly #registries: Iterable<MetricsOf>;
  #pages = 0;

  /** `registries` is read for each page. */
  constructor(registries: Iterable<MetricsOf>) {
    this.#registries = registries;
  }

  /** Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#pages >= MAX_PAGES) {
      response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8', 'retry-after': RETRY_AFTER_SECONDS });
      response.end('too many pages of metrics are being written\n');
      return;
    }
    this.#pages += 1;
    try {
      response.writeHead(200, { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE });
      if (request.method !== 'HEAD') {
        await this.#write(response);
      }
      response.end();
    } catch {
      // A page that ends early must not look like a whole one.
      response.destroy();
    } finally {
      this.#pages -= 1;
    }
  }

  async #write(response: ServerResponse): Promise<void> {
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    for await (const slice of metricsPage(this.#registries)) {
      if (!response.write(slice)) {
        await once(response, 'drain', { signal: closed.signal });
      }
    }
  }
}
