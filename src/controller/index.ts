export { assembleController, type WebhookOptions } from './assemble-controller.ts';
export {
  certificateFiles,
  controllerService,
  type ManagedOptions,
  type ManagedSettings,
  productIdentities,
  serviceAccountUser,
} from './managed-servers.ts';
