// Prints how many milliseconds after the request Chromium paints a page first, the median of
// five. The address is what spillway dashboard prints, the page follows.
import { launch, open } from './browser.mjs'

const [address, path] = process.argv.slice(2)
const browser = await launch()
const tab = await open(browser, address)
const times = []
for (let i = 0; i < 5; i++) {
  await tab.goto(new URL(path, address).href, { waitUntil: 'load' })
  await tab.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
  times.push(await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime))
}
await browser.close()
console.log(Math.round(times.sort((a, b) => a - b)[2]))
