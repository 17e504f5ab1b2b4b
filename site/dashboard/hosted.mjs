// Looks at the dashboard of a cluster in Chromium as one person does who has just logged in: she
// is shown the namespace that she may see, and steers by the keyboard alone as far as she may,
// and logs out. Then her session is over, and so is the one of a browser that has kept its
// cookies. The address of the dashboard, the path of what is steered and a name follow; what she
// sees is printed. With "ends" she does not log out, but waits until her session has ended.
import { audit, desk, end, found, launch, open, phone, walk } from './browser.mjs'

const [address, path, name, how] = process.argv.slice(2)
const browser = await launch(['--ignore-certificate-errors'])
let at = '/'
const where = () => `${at} (${name})`
const text = (tab, selector) => tab.$$eval(selector, (all) => all.map((e) => e.textContent.trim().replaceAll(/\s+/g, ' ')))

const enters = (tab) => Promise.all([tab.waitForNavigation({ waitUntil: 'load' }), tab.keyboard.press('Enter')])

const tab = await open(browser, address, {}, where)
for (at of ['/', '/?all', '/past', '/account', '/account?find', path]) {
  await tab.goto(new URL(at, address).href, { waitUntil: 'load' })
  await tab.waitForFunction(() => !document.querySelector('main').innerText.includes('Still reading'))
  console.log(`${at}: ${(await text(tab, 'main')).join(' ')}`)
  await audit(tab, where())
}
if (how === 'ends') {
  // The page that is open says it without being asked, or the next one leads to the issuer.
  at = 'the end of the session'
  for (let alive = true; alive;) {
    alive = await tab.evaluate(async () => (await fetch('/', { headers: { accept: 'application/json' } })).status === 200)
  }
  found['errors of the console'].length = 0 // of the refusal that was waited for
  console.log('The session has ended.')
} else {
  for (const look of [{ viewport: desk, theme: 'dark' }, { viewport: phone, theme: 'light' }]) {
    await tab.setViewport(look.viewport)
    await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: look.theme }])
    for (at of ['/', '/account']) {
      await tab.goto(new URL(at, address).href, { waitUntil: 'load' })
      const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      if (wide > 0) found.other.push(`${where()}: ${wide} pixels wider than the screen`)
      await audit(tab, where())
    }
  }
  await tab.setViewport(desk)
  at = path
  await tab.goto(new URL(path, address).href, { waitUntil: 'load' })
  await walk(tab, where, 'Pause', (f) => f.name === 'A' && f.text.split(' ')[0] === 'Pause')
  await enters(tab)
  await audit(tab, where())
  const denied = await text(tab, '#denied')
  if (denied.length > 0) {
    if (!(await tab.$('form[method=post] button[disabled]'))) found.other.push(`${where()}: the button works, although it is forbidden`)
    console.log(`Disabled: ${denied[0]}`)
  } else {
    await walk(tab, where, 'the reason', (f) => f.field === 'reason')
    await tab.keyboard.type('incident 42')
    await walk(tab, where, 'the button', (f) => f.name === 'BUTTON' && f.text === 'Pause')
    await enters(tab)
    for (const line of await text(tab, 'main > [role=status], main > [role=alert]')) console.log(line)
    await audit(tab, where())
  }
  at = 'the logout'
  await walk(tab, where, 'the account', (f) => f.name === 'A' && f.text === name)
  await enters(tab)
  const kept = await tab.cookies()
  await walk(tab, where, 'Log out', (f) => f.name === 'BUTTON' && f.text === 'Log out')
  await enters(tab)
  for (const line of await text(tab, 'main > p')) console.log(line)
  await audit(tab, where())
  await tab.setCookie(...kept.map(({ name, value }) => ({ name, value, url: address, path: '/', secure: true, httpOnly: true })))
  const status = await tab.evaluate(async () => (await fetch('/', { headers: { accept: 'application/json' } })).status)
  console.log(`With the cookies of before: status ${status}`)
  found['errors of the console'] = found['errors of the console'].filter((text) => !text.includes('401'))
}
await end(browser, `${name} in the cluster`)
