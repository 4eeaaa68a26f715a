import { probeRoutes, RoutedServer } from '../https/index.ts';
import type { MetricsEndpoint } from '../metrics/index.ts';

export interface OperationsFlags {
  readonly operationsAddr: string;
  readonly operationsPort: number;
}

/** The server for probes and metrics of a process that follows a cluster. @param notReady why it is not ready, if it is not */
export function operationsServer(
  { operationsAddr, operationsPort }: OperationsFlags,
  pages: MetricsEndpoint,
  notReady: () => string | undefined,
): RoutedServer {
  return new RoutedServer({
    name: 'operations',
    host: operationsAddr,
    port: operationsPort,
    routes: {
      ...probeRoutes(notReady),
      '/metrics': ({ request, response }) => void pages.answer(request, response),
    },
  });
}
