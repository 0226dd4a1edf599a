// Planted for hangs.test.ts: a page that loops, in a browser that leads a process group of its own.

import { test } from 'vitest';
import { openChromium } from '../../support/browser/chromium.ts';

test('waits for a page', async () => {
  const { context } = await openChromium();
  const page = await context.newPage();
  await page.evaluate('for (;;);');
});
